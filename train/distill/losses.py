"""Losses for the student's embeddings and their targets.

The third loss is `train.contrastive.lexical_teacher.neighbour_distillation_loss`.
"""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F


def cosine_loss(embeddings: Tensor, targets: Tensor) -> Tensor:
    """Return the mean of 1 - cosine between (N, D) embeddings and their (N, D) targets."""
    return 1 - F.cosine_similarity(embeddings, targets, dim=1).mean()


def squared_loss(embeddings: Tensor, targets: Tensor) -> Tensor:
    """Return the mean squared distance of (N, D) embeddings, scaled to length 1, from (N, D) targets."""
    return (F.normalize(embeddings, dim=1) - targets).square().sum(1).mean()
