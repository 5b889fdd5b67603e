"""The folder of a training run: its lock, its `config.json`, and the checks before a run resumes."""

from __future__ import annotations

import fcntl
import glob
import hashlib
import json
import os
from dataclasses import asdict, fields
from pathlib import Path
from typing import IO, Any

from simllm.errors import InputError
from simllm.io import output_file
from simllm.io.output_folder import MARKER, OutputFolder
from simllm.io.reading import read_json
from train.runtime import config as training_config
from train.runtime.batching import map_texts
from train.runtime.checkpoint import has_saved_states
from train.runtime.config import TrainingConfig
from train.runtime.log import LOG_FILE, read_log

CONFIG = "config.json"
CONTENT = "a training run"  # of the folder, for its marker
# Keys that may differ between two starts of a run; they do not change the results, except for rounding.
_MAY_CHANGE = ("out", "tensorboard", "gradient_checkpointing", "compile", "sharding")
# Subfolders that hold further folders.
_SUBFOLDERS = ("states", "vocabulary", "shards", "vectors", "language-model", "texts", "start")


def claim(config: TrainingConfig) -> IO[str]:
    """Lock the run folder, and write the configuration into it; return the lock, which closing releases.

    The folder stays as it is, and InputError is raised, if it holds anything but a run with this
    configuration, or if another process is training there.
    """
    out, values = Path(config.out), json.loads(json.dumps(_config_values(config)))
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
    before = read_json(out / CONFIG)
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
        pattern = training_config.encode_path(text)
        matches = glob.glob(pattern, recursive=True) if glob.has_magic(pattern) else []  # noqa: PTH207
        for path in (pattern, *matches):
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
    values = {key: value for key, value in _config_values(config).items() if key not in _MAY_CHANGE}
    return hashlib.sha256(json.dumps([values, *inputs]).encode()).hexdigest()[:12]


def _config_values(config: TrainingConfig) -> dict[str, Any]:
    """Convert a configuration to values that can be compared with the `config.json` of an older run."""
    values = training_config.decode_paths(asdict(config))
    # A run of simllm 0.1 has a `config.json` without the keys that later versions added.
    late = {key.name: key.default for key in fields(config) if "added" in key.metadata}
    return {key: value for key, value in values.items() if key not in late or value != late[key]}


def short_hash(*parts: object) -> str:
    """Return the first 12 hex digits of a SHA-256 over JSON values.

    The hash names the folder of a stored result, and the values are all that the result depends on.
    """
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]
