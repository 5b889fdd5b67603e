"""What a run tells: to whoever watches, to the log, to TensorBoard."""

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


def say(line: str) -> None:
    """Print one line of progress."""
    tqdm.write(line, file=sys.stderr)


def log_of(config: Optimization, world: World) -> Callable[[dict[str, Any]], None]:
    """What takes the lines of the log; only the first process writes one."""
    return Log(config) if world.first else lambda line: None


class Log:
    """Lines of JSON in `log.jsonl`, of words on the standard error, curves for TensorBoard by choice."""

    def __init__(self, config: Optimization) -> None:
        self.file = Path(config.out) / "log.jsonl"
        self.board = None
        if config.tensorboard:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError:
                raise InputError("tensorboard: true needs `pip install tensorboard`") from None
            self.board = SummaryWriter(self.file.parent / "tensorboard", purge_step=self._updates() + 1)

    def _updates(self) -> int:
        lines = self.file.read_text().splitlines() if self.file.is_file() else []
        return int(json.loads(lines[-1])["update"]) if lines else 0

    def __call__(self, line: dict[str, Any]) -> None:
        """Add a line; lines of updates that are done again are replaced."""
        figures = {key: f"{value:,.6g}" if isinstance(value, float) else f"{value:,}"
                   for key, value in line.items() if value is not None}  # fmt: skip
        say("  ".join(f"{key} {figure}" for key, figure in figures.items()))
        earlier = self.file.read_text().splitlines() if self.file.is_file() else []
        kept = [old for old in earlier if json.loads(old)["update"] < line["update"]]
        files.write(self.file, "\n".join([*kept, json.dumps(line)]) + "\n")
        if self.board:
            for key, value in line.items():
                if value is not None:
                    self.board.add_scalar(key, value, line["update"])
            self.board.flush()
