"""Variants of simllm: by pooling and similarity (RQ2), and by training time (RQ4)."""

from __future__ import annotations

import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

import torch

from simllm.errors import InputError
from simllm.metrics import registry
from simllm.metrics.protocol import Metric
from simllm.model import checkpoint
from simllm.model.encoder import Encoder
from simllm.model.pooling import POOLINGS
from simllm.model.similarity import SIMILARITIES
from simllm.scoring.token_matching import TOKEN_SIMILARITIES


@dataclass(frozen=True)
class Trained:
    """The metric of a model after a number of updates."""

    metric: Metric
    updates: float

    @property
    def name(self) -> str:
        """The name of the metric."""
        return self.metric.name


def variants(model: str | os.PathLike[str] | None) -> list[Metric]:
    """Load a model with every pooling and every similarity, and token by token (SIMLLM, Table 1)."""
    pooled = [
        registry.of_model(f"{pooling}, {similarity}", model, pooling=pooling, similarity=similarity)
        for pooling in POOLINGS
        for similarity in SIMILARITIES
    ]
    return pooled + [
        registry.of_model(f"tokens, {name}", model, similarity=name) for name in TOKEN_SIMILARITIES
    ]


def checkpoints(folder: Path) -> list[Trained]:
    """Load the models in a folder of model folders, by updates; the same model untrained comes first.

    The updates are those in a model's provenance, or else the number at the end of its folder's name.
    Raises InputError if there is no model, or one whose updates are unknown.
    """
    found = sorted(path.parent for path in folder.glob(f"*/{checkpoint.CONFIG}"))
    if not found:
        raise InputError(f"{folder}: no model folders in it; expected one for each checkpoint")
    models = [_trained(path) for path in found]
    return [_untrained(found[0]), *sorted(models, key=lambda model: model.updates)]


def _trained(folder: Path) -> Trained:
    provenance = checkpoint.load(folder).info.provenance
    number = re.search(r"(\d+)$", folder.name)
    updates = provenance.get("updates", number and int(number[1]))
    if isinstance(updates, bool) or not isinstance(updates, int | float) or not 0 <= updates < 1e15:
        raise InputError(f"{folder}: neither its provenance nor its name says after how many updates it is")
    return Trained(registry.of_model(folder.name, folder), float(updates))


def _untrained(folder: Path) -> Trained:
    """Make the model of this folder with random weights."""
    like = checkpoint.load(folder)
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as place:
        checkpoint.save(Path(place) / "model", Encoder(like.encoder.config), like.tokenizer, like.info, "")
        return Trained(registry.of_model("untrained", Path(place) / "model"), 0)
