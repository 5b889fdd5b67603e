"""A training run from its command line to its end: processes, configuration, folder and lock, errors.

The folder has the `config.json` of the run. A run is resumed only with the same configuration and inputs.
"""

from __future__ import annotations

import fcntl
import glob
import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import MISSING, asdict, fields, is_dataclass
from pathlib import Path
from typing import IO, Any, TypeVar

from simllm.errors import InputError
from simllm.io import output_file
from simllm.io.output_folder import MARKER, OutputFolder
from simllm.io.reading import read_json
from train.runtime import config as training_config
from train.runtime.checkpoint import has_saved_states
from train.runtime.command import make_parser, run_command
from train.runtime.config import SNAPSHOTS, TrainingConfig, map_texts
from train.runtime.distributed import ReportedError, World, join_processes
from train.runtime.log import LOG_FILE, print_progress, read_log
from train.runtime.loop import DivergedError
from train.runtime.signals import Stopped, StopRequest

C = TypeVar("C", bound=TrainingConfig)

CONFIG = "config.json"
CONTENT = "a training run"  # of the folder, for its marker
# Keys that may differ between two starts of a run; they do not change the results, except for rounding.
_MAY_CHANGE = ("out", "tensorboard", "gradient_checkpointing", "compile", "sharding", "snapshot_every")
# Subfolders that hold further folders.
_SUBFOLDERS = ("states", "vocabulary", "shards", "vectors", "language-model", "texts", "start", SNAPSHOTS)


def run_training(
    cls: type[C],
    train: Callable[[C, World, StopRequest], Path],
    name: str,
    description: str | None,
    estimate: Callable[[C, World], str] | None = None,
) -> int:
    """Run the command `python -m NAME CONFIG [key=value …]`, and return its exit status.

    `train` trains or resumes, and returns the folder of the best model. `estimate` describes the cost of the
    run for the option `--dry-run`; None: there is no such option.
    """
    parser = make_parser(name, description)
    parser.add_argument("config", type=Path, help="YAML file, such as configs/debug.yaml")
    parser.add_argument("overrides", nargs="*", metavar="key=value", default=[], help="such as updates=100")
    if estimate:
        parser.add_argument("--dry-run", action="store_true", help="print the cost of the run, and stop")

    def work(config: Path, overrides: list[str], dry_run: bool = False) -> None:
        is_first = True
        with StopRequest() as stop:
            try:
                with join_processes() as world:
                    is_first = world.is_first
                    loaded = world.first_then_others(lambda: training_config.load(cls, config, overrides))
                    if not dry_run:
                        _train(loaded, train, world, stop)
                    elif estimate and (cost := estimate(loaded, world)) and is_first:
                        print(cost)
            except (Exception, Stopped) as error:
                # Before the training loop, a signal is the cause of every error that follows it.
                cause = stop.exception if stop.exception and not stop.after_update else error
                raise _ended(cause, is_first)  # noqa: B904 (an unexpected error keeps its context)

    return run_command(parser, work, intermixed=True)


def _train(
    config: C, train: Callable[[C, World, StopRequest], Path], world: World, stop: StopRequest
) -> None:
    """Train in the folder `config.out`, which is locked meanwhile."""
    lock = world.first_then_others(lambda: claim(config) if world.is_first else None)
    is_shared = (Path(config.out) / CONFIG).is_file()
    if world.sum_values(is_shared) != [world.size]:
        raise InputError(f"{config.out}: not the same folder for all processes; they must share `out`")
    model = train(config, world, stop)
    if not model.is_dir():
        raise InputError(f"{model}: gone, though training is complete; choose another `out`")
    if world.is_first:
        print_progress(f"the best model is in {model}")
    del lock


def _ended(error: BaseException, is_first: bool) -> BaseException:
    """Return the error that ends this process, so that all processes together print one line."""
    if isinstance(error, ReportedError):
        return Stopped("", 2)
    if isinstance(error, DivergedError):
        return Stopped(f"error: {error}" if is_first else "", 1)
    if isinstance(error, Stopped):
        return Stopped(str(error) if is_first else "", error.status)
    return error


def claim(config: TrainingConfig) -> IO[str]:
    """Lock the run folder, and write the configuration into it; return the lock, which closing releases.

    The folder stays as it is, and InputError is raised, if it holds anything but a run with this
    configuration, or if another process is training there.
    """
    out, values = Path(config.out), _chosen_values(config)
    # Before anything is written, so that a wrong folder stays as it is.
    _check_run(out, config, values)
    _check_unread(out, values)
    OutputFolder(out, CONTENT).own()
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
    _check_run(out, config, values)  # again: another process may have begun a run there
    output_file.write(out / CONFIG, json.dumps(values, indent=2) + "\n")
    for folder in (out, *(out / name for name in _SUBFOLDERS)):
        OutputFolder(folder).recover_inside()
    return lock


def _check_run(out: Path, config: TrainingConfig, values: dict[str, Any]) -> None:
    """Check that a run can begin or resume in a folder; `values` is the configuration as JSON values."""
    folder = OutputFolder(out, CONTENT)
    folder.check()
    folder.check_links([CONFIG, LOG_FILE, "lock"])
    # A run that was stopped right at its start leaves these two files.
    if not set(_file_names(out)) - {MARKER, "lock"}:
        return
    if not (out / CONFIG).is_file():
        raise InputError(f"{out}: holds something else than a training run; name a new or empty folder")
    before = _without_defaults(read_json(out / CONFIG), config)
    if not {"out", "updates"} <= before.keys():
        raise InputError(f"{out}: holds something else than a training run; name a new or empty folder")
    lines, _ = read_log(out / LOG_FILE)
    trained = max((update for update, _ in lines), default=0)
    saved = has_saved_states(out / "states")
    if saved or trained:  # only then can training results be lost
        keys = (before.keys() | values.keys()) - set(_MAY_CHANGE)
        changed = sorted(key for key in keys if before.get(key) != values.get(key))
        if changed:
            raise InputError(f"{out}: made with another {', '.join(changed)}; choose another `out`")
    # A run that was killed while it saved its first state has a log and a model, but no state.
    if trained > config.evaluate_every and not saved:
        raise InputError(f"{out}: has a trained model, but its states are gone; choose another `out`")


def _check_unread(out: Path, values: dict[str, Any]) -> None:
    """Check that no path or glob pattern in the configuration leads into the run folder."""

    def check(text: str) -> str:
        matches = glob.glob(text, recursive=True) if glob.has_magic(text) else []  # noqa: PTH207
        for path in (text, *matches):
            read = output_file.real(Path(path))
            if output_file.mode_of(read) and output_file.is_above(output_file.real(out), read):
                raise InputError(
                    f"{out}: training would overwrite {text}, which it reads; choose another `out`"
                )
        return text

    map_texts({key: value for key, value in values.items() if key != "out"}, check)


def _file_names(folder: Path) -> list[str]:
    """List the names in a folder; none if the folder is missing."""
    try:
        return os.listdir(folder) if folder.exists() else []  # noqa: PTH208 (a glob hides errors)
    except OSError as error:
        raise InputError(f"{folder}: cannot be read ({error.strerror})") from None


def identity(config: TrainingConfig, *inputs: str) -> str:
    """Hash a configuration, without settings that do not affect the results, and texts that tell the inputs.

    A run resumes only from saved states with its own hash, 12 hex digits.
    """
    values = {key: value for key, value in _chosen_values(config).items() if key not in _MAY_CHANGE}
    return hashlib.sha256(json.dumps([values, *inputs]).encode()).hexdigest()[:12]


def _chosen_values(config: TrainingConfig) -> dict[str, Any]:
    """Return the values that are no defaults, as JSON; so a run can be resumed after a key was added."""
    chosen: dict[str, Any] = _without_defaults(_as_json(asdict(config)), config)
    return chosen


def _without_defaults(values: Any, config: Any) -> Any:
    """Leave out of JSON values, at all levels, what has the default that `config`, a dataclass, gives it."""
    if isinstance(values, list) and isinstance(config, tuple) and len(values) == len(config):
        return [_without_defaults(value, own) for value, own in zip(values, config, strict=True)]
    if not (isinstance(values, dict) and is_dataclass(config)):
        return values
    defaults = {
        key.name: _as_json(key.default if key.default_factory is MISSING else key.default_factory())
        for key in fields(config)
        if (key.default, key.default_factory) != (MISSING, MISSING)
    }
    return {
        name: _without_defaults(value, getattr(config, name, None))
        for name, value in values.items()
        if name not in defaults or value != defaults[name]
    }


def _as_json(value: Any) -> Any:
    return json.loads(json.dumps(value, default=asdict))


def short_hash(*parts: object) -> str:
    """Return the first 12 hex digits of a SHA-256 over JSON values.

    The hash names the folder of a stored result, and the values are all that the result depends on.
    """
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]
