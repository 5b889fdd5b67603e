"""Variants of the learned metric: by pooling and similarity (RQ2), and by training time (RQ4)."""

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
class TrainedModel:
    """The metric of a model after a number of updates."""

    metric: Metric
    updates: float

    @property
    def name(self) -> str:
        """The name of the metric."""
        return self.metric.name


def load_variants(model: str | os.PathLike[str] | None) -> list[Metric]:
    """Load a model with all poolings and similarities, token-level ones included (SIMLLM, Table 1)."""
    pooled = [
        registry.model_metric(f"{pooling}, {similarity}", model, pooling=pooling, similarity=similarity)
        for pooling in POOLINGS
        for similarity in SIMILARITIES
    ]
    return pooled + [
        registry.model_metric(f"tokens, {name}", model, similarity=name) for name in TOKEN_SIMILARITIES
    ]


def load_checkpoints(folder: Path) -> list[TrainedModel]:
    """Load the checkpoints of a training run, after an untrained model of the same shape.

    Args:
        folder: A folder of model folders. The number of updates of a model is in its provenance, or
            at the end of the name of its folder.

    Returns:
        The models, sorted by their number of updates.

    Raises:
        InputError: There is no model, or the number of updates of a model is unknown.
    """
    model_folders = sorted(path.parent for path in folder.glob(f"*/{checkpoint.CONFIG}"))
    if not model_folders:
        raise InputError(f"{folder}: no model folders in it; expected one for each checkpoint")
    models = [_load_trained(path) for path in model_folders]
    return [_make_untrained(model_folders[0]), *sorted(models, key=lambda model: model.updates)]


def _load_trained(folder: Path) -> TrainedModel:
    provenance = checkpoint.load(folder).info.provenance
    number = re.search(r"(\d+)$", folder.name)
    updates = provenance.get("updates", number and int(number[1]))
    if isinstance(updates, bool) or not isinstance(updates, int | float) or not 0 <= updates < 1e15:
        raise InputError(f"{folder}: neither its provenance nor its name has a number of updates")
    return TrainedModel(registry.model_metric(folder.name, folder), float(updates))


def _make_untrained(folder: Path) -> TrainedModel:
    """Make a model with random weights and the shape of the model in a folder."""
    like = checkpoint.load(folder)
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as place:
        checkpoint.save(Path(place) / "model", Encoder(like.encoder.config), like.tokenizer, like.info, "")
        return TrainedModel(registry.model_metric("untrained", Path(place) / "model"), 0)
