"""What every training command shares: its arguments, its folder, where a model comes from."""

from __future__ import annotations

import argparse
import datetime
import fcntl
import hashlib
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, fields
from pathlib import Path
from typing import IO, Any, TypeVar

import torch

import simllm
from simllm.errors import InputError
from simllm.io import files, folders
from simllm.io.strict import read_json
from train.runtime import config as configs
from train.runtime import log
from train.runtime.config import Optimization
from train.runtime.distributed import Failed, World, joined
from train.runtime.log import say
from train.runtime.loop import Diverged
from train.runtime.signals import Interrupted, Stop
from train.runtime.state import Progress, any_saved

C = TypeVar("C", bound=Optimization)

CONFIG = "config.json"
_MAY_CHANGE = ("out", "tensorboard")  # keys that may differ between two starts of a run
_FOLDERS_OF_FOLDERS = ("states", "vocabulary", "shards", "vectors", "language-model")  # in a run's folder


def command(
    cls: type[C],
    work: Callable[[C, World, Stop], Path],
    name: str,
    description: str | None,
    estimate: Callable[[C, World], str] | None = None,
) -> int:
    """Run a training command, `NAME CONFIG [key=value …]`.

    Returns:
        The exit status: 0 done, 1 diverged, 2 bad input, 75 or 130 stopped by a signal (rerun the
        same command to resume).
    """
    parser = argparse.ArgumentParser(
        prog=f"python -m {name}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("config", type=Path, help="YAML file, such as configs/debug.yaml")
    parser.add_argument("overrides", nargs="*", metavar="key=value", default=[], help="such as updates=100")
    if estimate:
        parser.add_argument("--dry-run", action="store_true", help="tell what it would take, and stop")
    options = parser.parse_args()
    speaks = True
    with Stop() as stop:
        try:
            with joined() as world:
                speaks = world.first
                config = world.first_does(lambda: configs.load(cls, options.config, options.overrides))
                if estimate and options.dry_run:
                    estimated = estimate(config, world)
                    if world.first:
                        print(estimated)
                    return 0
                lock = world.first_does(lambda: claim(config) if world.first else None)
                shared = (Path(config.out) / CONFIG).is_file()
                if world.total(shared) != [world.size]:
                    raise InputError(
                        f"{config.out}: not the same folder for all processes; they must share `out`"
                    )
                model = work(config, world, stop)
                if not model.is_dir():
                    raise InputError(f"{model}: gone, though training is complete; choose another `out`")
                if world.first:
                    say(f"the best model is in {model}")
                del lock
        except (Exception, Interrupted) as error:
            # What fails after a signal fails because of the signal, unless training has begun.
            cause = stop.interrupted if stop.interrupted and not stop.patient else error
            return _status(cause, speaks)
    return 0


def _status(error: BaseException, speaks: bool) -> int:
    """Print why a run ended, in one line; return its exit status."""
    if isinstance(error, Failed):  # the first process has printed the line
        return 2
    if isinstance(error, InputError):
        print(f"error: {error}", file=sys.stderr)
        return 2
    if isinstance(error, Diverged | Interrupted):
        if speaks:
            print("" if isinstance(error, Interrupted) else "error: ", error, sep="", file=sys.stderr)
        return error.status if isinstance(error, Interrupted) else 1
    raise error


def claim(config: Optimization) -> IO[str]:
    """Make `out` the folder of this run; nobody else may train there while the result is open.

    Raises InputError, before anything is changed, unless the folder is missing, empty, or holds
    a run of the same configuration that no other process works on.
    """
    out, asked = Path(config.out), json.loads(json.dumps(_asked(config)))
    _check_run(out, config, asked)
    folders.own(out)
    try:
        lock = (out / "lock").open("a", encoding="utf-8")
    except OSError as error:
        raise InputError(f"{out}: cannot be written ({error.strerror})") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InputError(f"{out}: another process is training there") from None
    except OSError as error:
        raise InputError(f"{out / 'lock'}: cannot be locked ({error.strerror})") from None
    _check_run(out, config, asked)  # again: another process may have begun a run there
    files.write(out / CONFIG, json.dumps(asked, indent=2) + "\n")
    for folder in (out, *(out / name for name in _FOLDERS_OF_FOLDERS)):
        folders.recover_all(folder)
    return lock


def _check_run(out: Path, config: Optimization, asked: dict[str, Any]) -> None:
    """Raise InputError unless the folder `out` can begin or resume a run as `asked`."""
    folders.check(out)
    if not set(_listed(out)) - {folders.MARKER, "lock"}:
        return
    if not (out / CONFIG).is_file():
        raise InputError(f"{out}: holds something else than a training run; name a new or empty folder")
    before = read_json(out / CONFIG)
    if not {"out", "updates"} <= before.keys():
        raise InputError(f"{out}: holds something else than a training run; name a new or empty folder")
    lines, _ = log.read(out / log.NAME)
    trained = max((update for update, _ in lines), default=0)
    saved = any_saved(out / "states")
    if saved or trained:  # there is something to lose
        keys = (before.keys() | asked.keys()) - set(_MAY_CHANGE)
        changed = sorted(key for key in keys if before.get(key) != asked.get(key))
        if changed:
            raise InputError(f"{out}: made with another {', '.join(changed)}; choose another `out`")
    # A run that was killed while it saved its first state has a log and a model, but no state.
    if trained > config.evaluate_every and not saved:
        raise InputError(f"{out}: has a trained model, but its states are gone; choose another `out`")


def _listed(folder: Path) -> list[str]:
    try:
        return os.listdir(folder) if folder.exists() else []  # noqa: PTH208 (a glob hides errors)
    except OSError as error:
        raise InputError(f"{folder}: cannot be read ({error.strerror})") from None


def identity(config: Optimization, *inputs: str) -> str:
    """Return a hash of what a run computes: its configuration without the folder, and its inputs."""
    asked = {key: value for key, value in _asked(config).items() if key not in _MAY_CHANGE}
    return hashlib.sha256(json.dumps([asked, *inputs]).encode()).hexdigest()[:12]


def _asked(config: Optimization) -> dict[str, Any]:
    """Return the configuration, without keys that were added later and have their default value."""
    values = configs.portable(asdict(config))
    late = {key.name: key.default for key in fields(config) if "added" in key.metadata}
    return {key: value for key, value in values.items() if key not in late or value != late[key]}


def git_revision() -> str:
    """The revision of the checkout that runs, "-dirty" when files differ from it."""
    describe = ["git", "describe", "--always", "--dirty"]
    try:
        done = subprocess.run(
            describe, cwd=Path(__file__).parent, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:  # no git
        return "unknown"
    return done.stdout.strip() or "unknown"


def provenance(config: Optimization, progress: Progress, world: World, revision: str) -> dict[str, Any]:
    """How a model was trained, as kept in its `simllm.json`."""
    return {
        "config": configs.portable(asdict(config)),
        "updates": progress.update,
        "tokens": progress.tokens,
        "seconds": round(progress.seconds),
        "hardware": hardware(world),
        "date": datetime.date.today().isoformat(),
        "git_revision": revision,
        "versions": {"simllm": simllm.__version__, "torch": torch.__version__},
    }


def hardware(world: World) -> str:
    """What a run computes on."""
    if world.device.type == "cuda":
        return f"{world.size} x {torch.cuda.get_device_name(world.device)}"
    return f"{world.size} x {torch.get_num_threads()} CPU threads ({platform.machine()})"


def card(stage: str, facts: dict[str, Any]) -> str:
    """The model card of a freshly trained model, from its provenance."""
    rows = "\n".join(
        f"| {key.replace('_', ' ')} | {value} |"
        for key, value in facts.items()
        if not isinstance(value, dict)
    )
    return (
        "---\nlibrary_name: simllm\ntags: [sentence-similarity, code-summarization]\n---\n"
        f"# A simllm encoder\n\n{stage}. Scores pairs of code summaries.\n\n"
        f"| | |\n|---|---|\n{rows}\n"
    )
