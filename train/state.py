"""The training state: saved whole or not at all, refused when damaged."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import nn

from simllm.errors import InputError

_KEPT = 2  # the newest, and the one before it should the newest be damaged


@dataclass
class Progress:
    """Where a run stands. Data order and dropout follow from (seed, update)."""

    update: int = 0  # updates done
    tokens: int = 0  # tokens of text seen
    seconds: float = 0.0  # time spent, over all starts
    best_perplexity: float = float("inf")


def save(folder: Path, run: str, progress: Progress, model: nn.Module, adam: torch.optim.Optimizer) -> None:
    """Save the state of the run identified by `run` after `progress.update` updates."""
    name = f"state-{progress.update:08d}"
    partial = folder / (name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    tensors = {f"model.{key}": value for key, value in model.state_dict().items()}
    for index, moments in adam.state_dict()["state"].items():
        tensors |= {f"adam.{index}.{key}": value for key, value in moments.items()}
    save_file({key: value.contiguous() for key, value in tensors.items()}, partial / "tensors.safetensors")
    digest = hashlib.sha256((partial / "tensors.safetensors").read_bytes()).hexdigest()
    manifest = {"run": run, "sha256": digest, "progress": asdict(progress)}
    (partial / "state.json").write_text(json.dumps(manifest))
    for file in (*partial.iterdir(), partial):
        _sync(file)
    shutil.rmtree(folder / name, ignore_errors=True)
    partial.rename(folder / name)
    _sync(folder)
    for old in _saved(folder)[_KEPT:]:
        shutil.rmtree(old)


def resume(folder: Path, run: str, model: nn.Module, adam: torch.optim.Optimizer) -> Progress:
    """Load the newest undamaged state into `model` and `adam`; a fresh Progress if there is none."""
    for saved in _saved(folder):
        try:
            manifest = json.loads((saved / "state.json").read_text())
            data = (saved / "tensors.safetensors").read_bytes()
            if hashlib.sha256(data).hexdigest() != manifest["sha256"]:
                raise ValueError("checksum differs")
        except (OSError, ValueError, KeyError) as error:
            print(f"warning: {saved} is damaged ({error}); trying the one before it", file=sys.stderr)
            continue
        if manifest["run"] != run:
            raise InputError(f"{saved}: saved under another configuration; choose another `out`")
        _restore(load_file(saved / "tensors.safetensors"), model, adam)
        return Progress(**manifest["progress"])
    return Progress()


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


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
