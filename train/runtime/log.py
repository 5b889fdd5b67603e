"""The log of a training run: JSON lines in a file, curves in TensorBoard, progress on standard error.

A line is a dictionary of figures, numbers or None, with the number of updates done under `update`.
"""

from __future__ import annotations

import json
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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


def format_time(seconds: float) -> str:
    """Format a duration, such as "2.5 hours"."""
    for unit, size in (("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} seconds"


_EVERY, _BEFORE_PAUSE = 30, 5  # fewest seconds between two lines of progress, and before an evaluation


class ProgressReport:
    """Progress of the training loop with the time left: a bar on a terminal, elsewhere a line now and then.

    The time left counts the evaluations that are still to come.
    """

    def __init__(self, config: TrainingConfig, done: int, silent: bool) -> None:
        self.config, self.done, self.silent = config, done, silent
        # The bar's own estimate would count an evaluation as a slow update.
        form = "{l_bar}{bar}| {n_fmt}/{total_fmt} [{elapsed}{postfix}]"
        self.bar = tqdm(
            initial=done, total=config.updates, disable=silent or None, leave=False, bar_format=form
        )
        self._updates: deque[float] = deque(maxlen=100)  # seconds of the latest updates and pauses
        self._pauses: deque[float] = deque(maxlen=5)
        self._shown = time.monotonic() - _EVERY / 2  # the first line comes earlier

    def advance(self, seconds: float, figures: str) -> None:
        """Report one more update, which took so many seconds."""
        self._updates.append(seconds)
        self.done += 1
        self.bar.update()
        self._show(f"{figures}, {self._time_left()} left", _EVERY)

    @contextmanager
    def pausing(self) -> Iterator[None]:
        """Report the pause for an evaluation, which the `with` block makes."""
        started = time.monotonic()
        self._show("evaluating", _BEFORE_PAUSE)
        yield
        self._pauses.append(time.monotonic() - started)

    def _time_left(self) -> str:
        every, updates = self.config.evaluate_every, self.config.updates
        left = (updates - self.done) * sum(self._updates) / len(self._updates)
        if self._pauses:
            # The evaluation after this update is still to come.
            pauses = -(-updates // every) - (self.done - 1) // every
            left += pauses * sum(self._pauses) / len(self._pauses)
        return format_time(left)

    def _show(self, text: str, after: float) -> None:
        if not self.bar.disable:
            self.bar.set_postfix_str(text)
        elif not self.silent and time.monotonic() - self._shown >= after:
            self._shown = time.monotonic()
            print_progress(f"  {self.done:,} of {self.config.updates:,} updates, {text}")


def open_log(config: TrainingConfig, world: World) -> Callable[[dict[str, Any]], None]:
    """Return the function that adds a line to the log; except in the first process, it does nothing."""
    return TrainingLog(config) if world.is_first else lambda line: None


class TrainingLog:
    """The log of a run, with a line for each evaluation; TensorBoard only if configured."""

    def __init__(self, config: TrainingConfig) -> None:
        """Read the lines that a resumed run logged before, and open TensorBoard if configured."""
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
                # TensorBoard drops figures after the last logged line, which the resumed run logs again.
                self.board = SummaryWriter(self.file.parent / "tensorboard", purge_step=done + 1)
            except OSError as error:
                raise InputError(f"{self.file.parent}: TensorBoard cannot write there ({error})") from None

    def __call__(self, line: dict[str, Any]) -> None:
        """Add a line, and remove old lines of the same update and of later ones."""
        figures = {key: f"{value:,.6g}" if isinstance(value, float) else f"{value:,}"
                   for key, value in line.items() if value is not None}  # fmt: skip
        print_progress("  ".join(f"{key} {figure}" for key, figure in figures.items()))
        # A resumed run repeats updates that it logged after its last saved state.
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

    The result is the number of updates and the text of each valid line, and the numbers, from 1, of damaged
    lines.
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
