"""The training state: it is saved whole or not at all, and a damaged one is not used.

states/state-00000040/tensors.safetensors   weights and moments of the optimizer
states/state-00000040/state.json            progress, loss scaling, what the run computes
states/state-00000040/sha256                checksum of both
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import nn

from simllm.errors import InputError
from simllm.io import folders

_TENSORS, _FACTS, _CHECKSUM = "tensors.safetensors", "state.json", "sha256"
_KEPT = 2  # the newest, and the one before it in case the newest is damaged


@dataclass
class Progress:
    """Where a run stands. Data order and dropout follow from (seed, update)."""

    update: int = 0  # updates done
    tokens: int = 0  # tokens of text seen
    seconds: float = 0.0  # spent on updates, over all starts
    best: float = float("inf")  # lowest criterion of all evaluations
    skipped: int = 0  # updates that had no finite gradient
    skipped_in_a_row: int = 0  # the last ones of these
    losses: list[float] = field(default_factory=list)  # of the updates since the last evaluation

    def mean_loss(self) -> float | None:
        """Mean loss of the updates since the last evaluation; None if all were skipped."""
        return round(sum(self.losses) / len(self.losses), 4) if self.losses else None


class State:
    """Everything that the next update depends on."""

    def __init__(
        self, model: nn.Module, adam: torch.optim.Optimizer, scaler: torch.amp.GradScaler, run: str
    ) -> None:
        self.model = model
        self.adam = adam
        self.scaler = scaler
        self.run = run  # identifies what is computed
        self.progress = Progress()

    def save(self, folder: Path) -> None:
        """Save the state into `folder`, then remove the oldest of the states before it.

        Raises InputError if the state cannot be written; the states saved before it are kept.
        """
        state = folder / f"state-{self.progress.update:08d}"
        tensors = {f"model.{key}": value for key, value in self.model.state_dict().items()}
        for index, moments in self.adam.state_dict()["state"].items():
            tensors |= {f"adam.{index}.{key}": value for key, value in moments.items()}
        facts = {"run": self.run, "progress": asdict(self.progress), "scaler": self.scaler.state_dict()}
        with folders.replacing(state) as partial:
            save_file({k: v.contiguous() for k, v in tensors.items()}, partial / _TENSORS)
            (partial / _FACTS).write_text(json.dumps(facts), encoding="utf-8")
            (partial / _CHECKSUM).write_text(_digest(partial), encoding="utf-8")
        try:
            done = [saved for saved in _saved(folder) if _update(saved) <= self.progress.update]
            for old in done[_KEPT:]:
                folders.remove(old)
        except OSError as error:
            raise InputError(f"{error.filename}: cannot be removed ({error.strerror})") from None

    def resume(self, folder: Path) -> None:
        """Become the newest undamaged state in `folder`; stay as it is if none was saved.

        Damaged states are named in a warning and left alone: the training replaces them when it
        reaches their updates again. Raises InputError if a state cannot be read, may not be
        replaced or belongs to another configuration, or if all states are damaged.
        """
        saved = _saved(folder)
        for state in saved:
            if problem := _damage(state):
                problem = f"{state} is damaged ({problem})"
                if not (state / folders.MARKER).is_file():  # it could not be replaced later
                    raise InputError(f"{problem} and has no {folders.MARKER}; move it away")
                print(f"warning: {problem}", file=sys.stderr)
                continue
            self._load(state)
            return
        if saved:
            raise InputError(f"{folder}: every saved state is damaged; choose another `out`")

    def _load(self, state: Path) -> None:
        try:
            facts = json.loads((state / _FACTS).read_text(encoding="utf-8"))
            tensors = load_file(state / _TENSORS)
        except OSError as error:
            raise InputError(f"{state}: cannot be read ({error.strerror})") from None
        if facts["run"] != self.run:
            raise InputError(f"{state}: saved under another configuration; choose another `out`")
        try:
            self._restore(tensors)
            self.scaler.load_state_dict(facts["scaler"])
            self.progress = Progress(**facts["progress"])
        except (KeyError, TypeError, RuntimeError):
            raise InputError(f"{state}: saved by another version; choose another `out`") from None

    def _restore(self, tensors: dict[str, torch.Tensor]) -> None:
        self.model.load_state_dict({k[6:]: v for k, v in tensors.items() if k.startswith("model.")})
        moments: dict[int, dict[str, torch.Tensor]] = {}
        for key, value in tensors.items():
            if match := re.fullmatch(r"adam\.(\d+)\.(\w+)", key):
                moments.setdefault(int(match[1]), {})[match[2]] = value
        groups = self.adam.state_dict()["param_groups"]
        self.adam.load_state_dict({"state": moments, "param_groups": groups})


def _digest(state: Path) -> str:
    digest = hashlib.sha256((state / _FACTS).read_bytes())
    with (state / _TENSORS).open("rb") as tensors:
        digest.update(hashlib.file_digest(tensors, "sha256").digest())
    return digest.hexdigest()


def _damage(state: Path) -> str:
    """Return what is wrong with a state's files, or an empty text.

    A file that cannot be read may be readable later, so that is an error: raises InputError.
    """
    try:
        if _digest(state) != (state / _CHECKSUM).read_bytes().decode("ascii", "replace"):
            return "checksum differs"
    except FileNotFoundError as error:
        return f"no {Path(error.filename).name}"
    except OSError as error:
        raise InputError(f"{error.filename or state}: cannot be read ({error.strerror})") from None
    return ""


def any_saved(folder: Path) -> bool:
    """Whether `folder` holds states, damaged ones included."""
    return bool(_saved(folder))


def _saved(folder: Path) -> list[Path]:
    """Return the saved states, newest first; raise InputError if the folder cannot be read."""
    try:
        names = os.listdir(folder)  # noqa: PTH208 (a glob hides errors)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InputError(f"{folder}: cannot be read ({error.strerror})") from None
    states = [folder / name for name in names if re.fullmatch(r"state-\d{8,}", name)]
    return sorted(states, key=_update, reverse=True)


def _update(state: Path) -> int:
    return int(state.name.removeprefix("state-"))
