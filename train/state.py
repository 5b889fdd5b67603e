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
from simllm.files import fresh_folder, replace_folder

_KEPT = 2  # the newest, and the one before it should the newest be damaged


@dataclass
class Progress:
    """Where a run stands. Data order and dropout follow from (seed, update)."""

    update: int = 0  # updates done
    tokens: int = 0  # tokens of text seen
    seconds: float = 0.0  # spent on updates, over all starts
    best: float = float("inf")  # lowest criterion of all evaluations
    losses: list[float] = field(default_factory=list)  # of the updates since the last evaluation


def save(folder: Path, run: str, progress: Progress, model: nn.Module, adam: torch.optim.Optimizer) -> None:
    """Save the state of the run identified by `run` after `progress.update` updates."""
    state = folder / f"state-{progress.update:08d}"
    partial = fresh_folder(state)
    tensors = {f"model.{key}": value for key, value in model.state_dict().items()}
    for index, moments in adam.state_dict()["state"].items():
        tensors |= {f"adam.{index}.{key}": value for key, value in moments.items()}
    save_file({key: value.contiguous() for key, value in tensors.items()}, partial / "tensors.safetensors")
    facts = json.dumps({"run": run, "progress": asdict(progress)})
    (partial / "state.json").write_text(facts)
    (partial / "sha256").write_text(_digest(partial))
    replace_folder(partial, state)
    for old in _saved(folder)[_KEPT:]:
        shutil.rmtree(old)


def resume(folder: Path, run: str, model: nn.Module, adam: torch.optim.Optimizer) -> Progress:
    """Load the newest undamaged state into `model` and `adam`; a fresh Progress if none was saved.

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
        if facts["run"] != run:
            raise InputError(f"{saved}: saved under another configuration; choose another `out`")
        _restore(load_file(saved / "tensors.safetensors"), model, adam)
        for old in damaged:
            shutil.rmtree(old)
        progress = Progress(**facts["progress"])
        print(f"resuming after update {progress.update}", file=sys.stderr)
        return progress
    if damaged:
        raise InputError(f"{folder}: every saved state is damaged; remove the folder to start anew")
    return Progress()


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


def _restore(tensors: dict[str, torch.Tensor], model: nn.Module, adam: torch.optim.Optimizer) -> None:
    model.load_state_dict({k[6:]: v for k, v in tensors.items() if k.startswith("model.")})
    moments: dict[int, dict[str, torch.Tensor]] = {}
    for key, value in tensors.items():
        if match := re.fullmatch(r"adam\.(\d+)\.(\w+)", key):
            moments.setdefault(int(match[1]), {})[match[2]] = value
    adam.load_state_dict({"state": moments, "param_groups": adam.state_dict()["param_groups"]})


def _saved(folder: Path) -> list[Path]:
    """Saved states, newest first."""
    return sorted((p for p in folder.glob("state-*") if re.fullmatch(r"state-\d+", p.name)), reverse=True)
