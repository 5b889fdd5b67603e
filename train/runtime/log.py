"""The log of a training run: lines of JSON in a file, words on standard error, curves for TensorBoard."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tqdm import tqdm

from simllm.errors import InputError
from simllm.io import files
from train.runtime.config import Optimization
from train.runtime.distributed import World

NAME = "log.jsonl"


def say(line: str) -> None:
    """Print one line of progress."""
    tqdm.write(line, file=sys.stderr)


def log_of(config: Optimization, world: World) -> Callable[[dict[str, Any]], None]:
    """Return the function that takes the lines of the log; only the first process writes them."""
    return Log(config) if world.first else lambda line: None


class Log:
    """A run's `log.jsonl`, with the same lines on standard error and, by choice, in TensorBoard."""

    def __init__(self, config: Optimization) -> None:
        """Read the lines of earlier starts; raise InputError if they cannot be read."""
        self.file = Path(config.out) / NAME
        self._lines, damaged = read(self.file)
        for number in damaged:
            print(f"warning: {self.file}, line {number}: not a line of a log; left out", file=sys.stderr)
        self.board = None
        if config.tensorboard:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError:
                raise InputError("tensorboard: true needs `pip install tensorboard`") from None
            done = max((update for update, _ in self._lines), default=0)
            try:
                self.board = SummaryWriter(self.file.parent / "tensorboard", purge_step=done + 1)
            except (OSError, UnicodeEncodeError) as error:  # it writes no path that the locale cannot show
                raise InputError(f"{self.file.parent}: TensorBoard cannot write there ({error})") from None

    def __call__(self, line: dict[str, Any]) -> None:
        """Add a line; it replaces the lines of its own and of later updates."""
        figures = {key: f"{value:,.6g}" if isinstance(value, float) else f"{value:,}"
                   for key, value in line.items() if value is not None}  # fmt: skip
        say("  ".join(f"{key} {figure}" for key, figure in figures.items()))
        self._lines = [(update, old) for update, old in self._lines if update < line["update"]]
        self._lines.append((line["update"], json.dumps(line)))
        files.write(self.file, "".join(text + "\n" for _, text in self._lines))
        if self.board:
            for key, value in line.items():
                if value is not None:
                    self.board.add_scalar(key, value, line["update"])
            self.board.flush()


def read(file: Path) -> tuple[list[tuple[int, str]], list[int]]:
    """Read a log, which need not exist.

    Returns:
        The lines with their updates, and the numbers of lines that are cut off or damaged: a run
        can be resumed without them.

    Raises:
        InputError: The file cannot be read.
    """
    try:
        text = file.read_bytes().decode("utf-8", "replace")
    except FileNotFoundError:
        return [], []
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror})") from None
    lines, damaged = [], []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            lines.append((int(json.loads(line)["update"]), line))
        except (ValueError, TypeError, KeyError, RecursionError):
            damaged.append(number)
    return lines, damaged
