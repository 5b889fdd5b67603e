"""What every training command shares: its arguments, its log, where a model comes from."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import fcntl
import hashlib
import json
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import torch

import simllm
from simllm import files
from simllm.config import read_json
from simllm.errors import InputError
from train import config as configs
from train.config import Optimization
from train.loop import Interrupted
from train.state import Progress

C = TypeVar("C", bound=Optimization)


def command(cls: type[C], work: Callable[[C], Path], name: str, description: str | None) -> int:
    """Run a training command, `NAME CONFIG [key=value …]`; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog=f"python -m {name}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("config", type=Path, help="YAML file, such as configs/debug.yaml")
    parser.add_argument("overrides", nargs="*", metavar="key=value", default=[], help="such as updates=100")
    options = parser.parse_args()
    try:
        config = configs.load(cls, options.config, options.overrides)
        with claimed(config):
            model = work(config)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except (Interrupted, KeyboardInterrupt) as interrupted:
        print(str(interrupted) or "interrupted; the same command goes on", file=sys.stderr)
        return 130
    say(f"the best model is in {model}")
    return 0


@contextlib.contextmanager
def claimed(config: Optimization) -> Iterator[None]:
    """Hold the run's folder: for this process alone, and for this configuration alone."""
    out = Path(config.out)
    try:
        out.mkdir(parents=True, exist_ok=True)
        lock = (out / "lock").open("w")
    except OSError as error:
        raise InputError(f"{out}: cannot be written ({error.strerror})") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(f"{out}: another process is training there") from None
        file, asked = out / "config.json", json.loads(json.dumps(asdict(config)))
        if any((out / "states").glob("state-*")):  # from here on there is something to lose
            before = read_json(file)
            changed = sorted(key for key in asked if before.get(key) != asked[key] and key != "out")
            if changed:
                raise InputError(f"{out}: made with another {', '.join(changed)}; choose another `out`")
        files.write(file, json.dumps(asked, indent=2) + "\n")
        files.recover(out / "model")
        yield


def say(line: str) -> None:
    """Print one line of progress."""
    print(line, file=sys.stderr, flush=True)


def record(log: Path, line: dict[str, Any]) -> None:
    """Add a line to the log; lines of updates that are done again are replaced."""
    say("  ".join(f"{key} {value:,}" for key, value in line.items()))
    earlier = log.read_text().splitlines() if log.is_file() else []
    kept = [old for old in earlier if json.loads(old)["update"] < line["update"]]
    files.write(log, "\n".join([*kept, json.dumps(line)]) + "\n")


def identity(config: Optimization, *inputs: str) -> str:
    """Identifies what a run computes: its configuration, but for the folder, and its inputs."""
    asked = {key: value for key, value in asdict(config).items() if key != "out"}
    return hashlib.sha256(json.dumps([asked, *inputs]).encode()).hexdigest()[:12]


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


def provenance(config: Optimization, progress: Progress, revision: str) -> dict[str, Any]:
    """How a model was trained, as kept in its `simllm.json`."""
    return {
        "config": asdict(config),
        "updates": progress.update,
        "tokens": progress.tokens,
        "seconds": round(progress.seconds),
        "hardware": f"{torch.get_num_threads()} CPU threads ({platform.machine()})",
        "date": datetime.date.today().isoformat(),
        "git_revision": revision,
        "versions": {"simllm": simllm.__version__, "torch": torch.__version__},
    }


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
