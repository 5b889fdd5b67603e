"""The training state: saved whole or not at all, refused when damaged."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import nn

from simllm.errors import InputError
from simllm.io import folders

_KEPT = 2  # the newest, and the one before it should the newest be damaged


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
        """Save it beside the states before it, the oldest of which go.

        Raises InputError where it cannot be written; what was saved before stays as it is.
        """
        state = folder / f"state-{self.progress.update:08d}"
        tensors = {f"model.{key}": value for key, value in self.model.state_dict().items()}
        for index, moments in self.adam.state_dict()["state"].items():
            tensors |= {f"adam.{index}.{key}": value for key, value in moments.items()}
        facts = {"run": self.run, "progress": asdict(self.progress), "scaler": self.scaler.state_dict()}
        with folders.replacing(state) as partial:
            save_file({k: v.contiguous() for k, v in tensors.items()}, partial / "tensors.safetensors")
            (partial / "state.json").write_text(json.dumps(facts))
            (partial / "sha256").write_text(_digest(partial))
        for old in (*_saved(folder)[_KEPT:], *folder.glob("state-*.partial")):  # left by a kill
            shutil.rmtree(old)

    def resume(self, folder: Path) -> None:
        """Become the newest undamaged state; stay as it is if none was saved.

        Damaged states are named, and removed once an older one has been loaded. Raises
        InputError where all are damaged or the state belongs to another configuration.
        """
        damaged = []
        for saved in _saved(folder):
            if not _intact(saved):
                damaged.append(saved)
                print(f"warning: {saved} is damaged (checksum differs)", file=sys.stderr)
                continue
            facts = json.loads((saved / "state.json").read_text())
            if facts["run"] != self.run:
                raise InputError(f"{saved}: saved under another configuration; choose another `out`")
            self._restore(load_file(saved / "tensors.safetensors"))
            self.scaler.load_state_dict(facts["scaler"])
            self.progress = Progress(**facts["progress"])
            for old in damaged:
                shutil.rmtree(old)
            return
        if damaged:
            raise InputError(f"{folder}: every saved state is damaged; remove the folder to start anew")

    def _restore(self, tensors: dict[str, torch.Tensor]) -> None:
        self.model.load_state_dict({k[6:]: v for k, v in tensors.items() if k.startswith("model.")})
        moments: dict[int, dict[str, torch.Tensor]] = {}
        for key, value in tensors.items():
            if match := re.fullmatch(r"adam\.(\d+)\.(\w+)", key):
                moments.setdefault(int(match[1]), {})[match[2]] = value
        groups = self.adam.state_dict()["param_groups"]
        self.adam.load_state_dict({"state": moments, "param_groups": groups})


def _digest(state: Path) -> str:
    digest = hashlib.sha256((state / "state.json").read_bytes())
    with (state / "tensors.safetensors").open("rb") as tensors:
        digest.update(hashlib.file_digest(tensors, "sha256").digest())
    return digest.hexdigest()


def _intact(state: Path) -> bool:
    try:
        return _digest(state) == (state / "sha256").read_text()
    except (OSError, UnicodeDecodeError):
        return False


def _saved(folder: Path) -> list[Path]:
    """Saved states, newest first."""
    return sorted((p for p in folder.glob("state-*") if re.fullmatch(r"state-\d+", p.name)), reverse=True)
