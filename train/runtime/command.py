"""The exit status of a training run that ended with an error, and the printing of the error."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from simllm.errors import InputError
from train.runtime import config as training_config
from train.runtime import run_folder
from train.runtime.config import TrainingConfig
from train.runtime.distributed import ReportedError, World, join_processes
from train.runtime.log import print_progress
from train.runtime.loop import DivergedError
from train.runtime.signals import Interrupted, StopRequest


def print_error(error: BaseException, is_first: bool) -> int:
    """Print in one line why a run ended; raise unexpected errors again.

    The exit status is 1 if training diverged, 2 for bad input, 130 after Ctrl-C, 75 after another signal.
    """
    if isinstance(error, ReportedError):  # another process has printed it
        return 2
    if isinstance(error, InputError):
        print(f"error: {error}", file=sys.stderr)
        return 2
    if isinstance(error, DivergedError | Interrupted):
        if is_first:
            print("" if isinstance(error, Interrupted) else "error: ", error, sep="", file=sys.stderr)
        return error.status if isinstance(error, Interrupted) else 1
    raise error


C = TypeVar("C", bound=TrainingConfig)


def run_training(
    cls: type[C],
    train: Callable[[C, World, StopRequest], Path],
    name: str,
    description: str | None,
    estimate: Callable[[C, World], str] | None = None,
) -> int:
    """Run the training command `NAME CONFIG [key=value …]` with the arguments in `sys.argv`.

    Args:
        cls: The configuration class of the training stage.
        train: Function that trains or resumes, and returns the folder of the best model.
        name: The module to run as a command, such as `train.pretrain`.
        description: The help text.
        estimate: Function that describes the cost of the run, for the option `--dry-run`. None: the
            command has no such option.

    Returns:
        The exit status: 0 done, 1 diverged, 2 bad input, 130 stopped by Ctrl-C, 75 stopped by another signal.
        After 75 and 130, the same command resumes the run.
    """
    parser = argparse.ArgumentParser(
        prog=f"python -m {name}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("config", type=Path, help="YAML file, such as configs/debug.yaml")
    parser.add_argument("overrides", nargs="*", metavar="key=value", default=[], help="such as updates=100")
    if estimate:
        parser.add_argument("--dry-run", action="store_true", help="print the cost of the run, and stop")
    # Intermixed, so that --dry-run may stand between overrides.
    options = parser.parse_intermixed_args()
    is_first = True
    with StopRequest() as stop:
        try:
            with join_processes() as world:
                is_first = world.is_first
                config = world.first_then_others(
                    lambda: training_config.load(cls, options.config, options.overrides)
                )
                if estimate and options.dry_run:
                    estimated = estimate(config, world)
                    if world.is_first:
                        print(estimated)
                    return 0
                lock = world.first_then_others(lambda: run_folder.claim(config) if world.is_first else None)
                is_shared = (Path(config.out) / run_folder.CONFIG).is_file()
                if world.sum_values(is_shared) != [world.size]:
                    raise InputError(
                        f"{config.out}: not the same folder for all processes; they must share `out`"
                    )
                model = train(config, world, stop)
                if not model.is_dir():
                    raise InputError(f"{model}: gone, though training is complete; choose another `out`")
                if world.is_first:
                    print_progress(f"the best model is in {model}")
                # The lock must stay referenced until here: when its file is closed, another process may
                # train.
                del lock
        except (Exception, Interrupted) as error:
            # Before the training loop, a signal is the cause of every error that follows it.
            cause = stop.exception if stop.exception and not stop.after_update else error
            return print_error(cause, is_first)
    return 0
