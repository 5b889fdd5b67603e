"""Training checkpoints: saving, keeping the two newest, resuming, and detecting damaged ones.

A checkpoint, called "saved state" here, is a folder. The number in its name counts updates:

    states/state-00000040/tensors.safetensors   weights and moments of the optimizer
    states/state-00000040/state.json            progress, loss scaling, identity of the run
    states/state-00000040/sha256                checksum of the two files above
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
from simllm.io.output_folder import MARKER, OutputFolder
from train.runtime.distributed import distribute_like

_TENSORS, _FACTS, _CHECKSUM = "tensors.safetensors", "state.json", "sha256"
_KEPT = 2  # saved states that are not removed: the newest, and the previous one in case of damage


@dataclass
class Progress:
    """The progress of a training run.

    Data order and dropout are not stored, because the seed and the update's number decide them.

    Attributes:
        update: Number of updates done.
        tokens: Number of text tokens seen.
        seconds: Time spent on updates, including the time before the run was resumed.
        best: Lowest criterion of all evaluations.
        skipped: Number of updates skipped because their loss or gradient was not finite.
        losses: Losses of the updates since the last evaluation, without skipped updates.
    """

    update: int = 0
    tokens: int = 0
    seconds: float = 0.0
    best: float = float("inf")
    skipped: int = 0
    skipped_in_a_row: int = 0
    losses: list[float] = field(default_factory=list)

    def mean_loss(self) -> float | None:
        """Compute the mean of `losses`; None if all updates since the last evaluation were skipped."""
        return round(sum(self.losses) / len(self.losses), 4) if self.losses else None


class TrainingState:
    """Everything that a resumed run needs; states with another hash than `run` are refused."""

    def __init__(
        self, model: nn.Module, adam: torch.optim.Optimizer, scaler: torch.amp.GradScaler, run: str
    ) -> None:
        self.model = model
        self.adam = adam
        self.scaler = scaler
        self.run = run
        self.progress = Progress()

    def save(self, folder: Path) -> None:
        """Save the state into the folder of all saved states, and remove all but the two newest.

        If that fails, InputError is raised and the older states stay.
        """
        state = folder / f"state-{self.progress.update:08d}"
        tensors = {f"model.{key}": value for key, value in self.model.state_dict().items()}
        for index, moments in self.adam.state_dict()["state"].items():
            tensors |= {f"adam.{index}.{key}": value for key, value in moments.items()}
        facts = {"run": self.run, "progress": asdict(self.progress), "scaler": self.scaler.state_dict()}
        with OutputFolder(state, "a training state").replacing(keep_edits=False) as partial:
            save_file(_untied(tensors), partial / _TENSORS)
            (partial / _FACTS).write_text(json.dumps(facts), encoding="utf-8")
            (partial / _CHECKSUM).write_text(_compute_checksum(partial), encoding="utf-8")
        try:
            # Later states are damaged ones that `resume` skipped. They must not count as the newest.
            done = [saved for saved in _saved_states(folder) if _update(saved) <= self.progress.update]
            for old in done[_KEPT:]:
                OutputFolder(old).remove()
        except OSError as error:
            raise InputError(f"{error.filename}: cannot be removed ({error.strerror})") from None

    def resume(self, folder: Path) -> None:
        """Load the newest undamaged state; do nothing if the folder has no states.

        Damaged states are skipped with a warning, but not removed. The resumed run writes over a damaged
        state when it reaches the same update again. InputError: a state is of another run, or all are
        damaged.
        """
        saved = _saved_states(folder)
        for state in saved:
            if problem := _find_damage(state):
                problem = f"{state} is damaged ({problem})"
                if not (state / MARKER).is_file():  # it could not be replaced later
                    raise InputError(f"{problem} and has no {MARKER}; move it away")
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
        except (KeyError, IndexError, TypeError, RuntimeError):
            raise InputError(f"{state}: saved by another version; choose another `out`") from None

    def _restore(self, tensors: dict[str, torch.Tensor]) -> None:
        """Load the model's weights and the optimizer's moments from tensors named `model.…` and `adam.…`."""
        own = self.model.state_dict()
        weights = {k[6:]: v for k, v in tensors.items() if k.startswith("model.")}
        self.model.load_state_dict({k: distribute_like(v, own[k]) for k, v in weights.items()})
        parameters = [p for group in self.adam.param_groups for p in group["params"]]
        moments: dict[int, dict[str, torch.Tensor]] = {}
        for key, value in tensors.items():
            if match := re.fullmatch(r"adam\.(\d+)\.(\w+)", key):
                index = int(match[1])
                moments.setdefault(index, {})[match[2]] = distribute_like(value, parameters[index])
        groups = self.adam.state_dict()["param_groups"]
        self.adam.load_state_dict({"state": moments, "param_groups": groups})


def _untied(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Copy tensors that share their memory with an earlier one (tied weights): safetensors refuses them."""
    stored: dict[str, torch.Tensor] = {}
    places: set[int] = set()
    for name, tensor in tensors.items():
        stored[name] = tensor.clone() if tensor.data_ptr() in places else tensor.contiguous()
        places.add(tensor.data_ptr())
    return stored


def _compute_checksum(state: Path) -> str:
    digest = hashlib.sha256((state / _FACTS).read_bytes())
    with (state / _TENSORS).open("rb") as tensors:
        digest.update(hashlib.file_digest(tensors, "sha256").digest())
    return digest.hexdigest()


def _find_damage(state: Path) -> str:
    """Describe the damage of a saved state; an empty string means no damage."""
    try:
        if _compute_checksum(state) != (state / _CHECKSUM).read_bytes().decode("ascii", "replace"):
            return "checksum differs"
    except FileNotFoundError as error:
        return f"no {Path(error.filename).name}"
    except OSError as error:
        # This is not damage, because the file may be readable later.
        raise InputError(f"{error.filename or state}: cannot be read ({error.strerror})") from None
    return ""


def has_saved_states(folder: Path) -> bool:
    """Return whether a folder contains saved states, damaged or not."""
    return bool(_saved_states(folder))


def _saved_states(folder: Path) -> list[Path]:
    """List the folders of saved states, newest first."""
    try:
        names = os.listdir(folder)  # noqa: PTH208 (a glob hides errors)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InputError(f"{folder}: cannot be read ({error.strerror})") from None
    states = [folder / name for name in names if re.fullmatch(r"state-\d{8,}", name)]
    return sorted(states, key=_update, reverse=True)


def _update(state: Path) -> int:
    """Return the number of updates in the name of a saved state's folder."""
    return int(state.name.removeprefix("state-"))
