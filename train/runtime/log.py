"""The log of a training run: JSON lines in a file, text on standard error, curves in TensorBoard."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tqdm import tqdm

from simllm.errors import InputError
from simllm.io import output_file
from train.runtime.config import TrainingConfig
from train.runtime.distributed import World

LOG_FILE = "log.jsonl"


def print_progress(line: str) -> None:
    """Print one line on standard error, above the progress bar."""
    tqdm.write(line, file=sys.stderr)


def open_log(config: TrainingConfig, world: World) -> Callable[[dict[str, Any]], None]:
    """Return a function that adds one line of measurements, such as losses, to the log of a training run.

    The line goes to the file `log.jsonl`, to standard error and, if configured, to TensorBoard. Only the
    first process writes the log. In other processes the function does nothing.

    Args:
        config: The configuration of the run.
        world: The processes of the run.

    Returns:
        A function with one argument: the measurements of one line, as a dictionary from names to numbers
        or None.

    Raises:
        InputError: The existing log of a resumed run cannot be read. Or the configuration asks for
            TensorBoard, but TensorBoard is not installed or cannot write.
    """
    return TrainingLog(config) if world.is_first else lambda line: None


class TrainingLog:
    """The log of a training run, with one line of measurements, such as losses, for each evaluation.

    Each line goes to the file `log.jsonl`, to standard error and, if configured, to TensorBoard.
    """

    def __init__(self, config: TrainingConfig) -> None:
        """Open the log; if the run is resumed, read the lines that it logged before.

        Args:
            config: The configuration of the run.

        Raises:
            InputError: The log cannot be read. Or the configuration asks for TensorBoard, but TensorBoard is
                not installed or cannot write.
        """
        self.file = Path(config.out) / LOG_FILE
        self._lines, damaged = read_log(self.file)
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
            except (OSError, UnicodeEncodeError) as error:  # for paths that the locale cannot encode
                raise InputError(f"{self.file.parent}: TensorBoard cannot write there ({error})") from None

    def __call__(self, line: dict[str, Any]) -> None:
        """Add a line of measurements, such as losses, to the log.

        A resumed run may repeat updates (optimizer steps) that it logged before it stopped. Therefore, old
        lines for the same update and for later updates are removed.

        Args:
            line: A dictionary from names to numbers or None. The key `update` has the number of updates done.
        """
        figures = {key: f"{value:,.6g}" if isinstance(value, float) else f"{value:,}"
                   for key, value in line.items() if value is not None}  # fmt: skip
        print_progress("  ".join(f"{key} {figure}" for key, figure in figures.items()))
        self._lines = [(update, old) for update, old in self._lines if update < line["update"]]
        self._lines.append((line["update"], json.dumps(line)))
        output_file.write(self.file, "".join(text + "\n" for _, text in self._lines))
        if self.board:
            for key, value in line.items():
                if value is not None:
                    self.board.add_scalar(key, value, line["update"])
            self.board.flush()


def read_log(file: Path) -> tuple[list[tuple[int, str]], list[int]]:
    """Read a log file; a missing file counts as empty.

    Returns:
        Two lists. The first list has a tuple for each valid line: the number of updates (optimizer steps)
        done, and the text of the line. The second list has the line numbers of damaged lines, from 1.

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
