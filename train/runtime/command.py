"""What every training command shares: its arguments, its folder, where a model comes from."""

from __future__ import annotations

import argparse
import datetime
import fcntl
import hashlib
import json
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
from train.runtime.config import Optimization
from train.runtime.distributed import Failed, World, joined
from train.runtime.log import say
from train.runtime.loop import Diverged
from train.runtime.signals import Interrupted, Stop
from train.runtime.state import Progress

C = TypeVar("C", bound=Optimization)

_MAY_CHANGE = ("out", "tensorboard")  # of a config, between two starts of a run


def command(
    cls: type[C],
    work: Callable[[C, World, Stop], Path],
    name: str,
    description: str | None,
    estimate: Callable[[C, World], str] | None = None,
) -> int:
    """Run a training command, `NAME CONFIG [key=value …]`.

    Returns its exit status: 0 done, 1 diverged, 2 bad input, 75 or 130 stopped by a signal
    (the same command goes on).
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
    try:
        with Stop() as stop, joined() as world:
            speaks = world.first
            config = world.first_does(lambda: configs.load(cls, options.config, options.overrides))
            if estimate and options.dry_run:
                estimated = estimate(config, world)
                if world.first:
                    print(estimated)
                return 0
            lock = world.first_does(lambda: claim(config) if world.first else None)
            shared = (Path(config.out) / "config.json").is_file()
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
    except Failed:
        return 2
    except (InputError, Diverged) as error:
        if speaks or isinstance(error, InputError):
            print(f"error: {error}", file=sys.stderr)
        return 2 if isinstance(error, InputError) else 1
    except Interrupted as interrupted:
        if speaks:
            print(interrupted, file=sys.stderr)
        return interrupted.status
    return 0


def claim(config: Optimization) -> IO[str]:
    """Hold the run's folder while the result is open: for one run, and one configuration."""
    out = Path(config.out)
    try:
        out.mkdir(parents=True, exist_ok=True)
        lock = (out / "lock").open("w")
    except OSError as error:
        raise InputError(f"{out}: cannot be written ({error.strerror})") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InputError(f"{out}: another process is training there") from None
    except OSError as error:
        raise InputError(f"{out / 'lock'}: cannot be locked ({error.strerror})") from None
    file, asked = out / "config.json", json.loads(json.dumps(_asked(config)))
    if any((out / "states").glob("state-*")):  # from here on there is something to lose
        before = read_json(file)
        keys = (before.keys() | asked.keys()) - set(_MAY_CHANGE)
        changed = sorted(key for key in keys if before.get(key) != asked.get(key))
        if changed:
            raise InputError(f"{out}: made with another {', '.join(changed)}; choose another `out`")
    files.write(file, json.dumps(asked, indent=2) + "\n")
    folders.recover(out / "model")
    return lock


def identity(config: Optimization, *inputs: str) -> str:
    """Identifies what a run computes: its configuration, but for the folder, and its inputs."""
    asked = {key: value for key, value in _asked(config).items() if key not in _MAY_CHANGE}
    return hashlib.sha256(json.dumps([asked, *inputs]).encode()).hexdigest()[:12]


def _asked(config: Optimization) -> dict[str, Any]:
    """Every key, but for those that came later and are at their defaults."""
    values = asdict(config)
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
        "config": asdict(config),
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
