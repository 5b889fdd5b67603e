"""Losses of distillation that compare the student's embeddings with their targets.

Another loss of distillation compares the similarities between texts. It is in another module:
`train.contrastive.lexical_teacher.neighbour_distillation_loss`.
"""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F


def cosine_loss(embeddings: Tensor, targets: Tensor) -> Tensor:
    """Compute the mean of 1 - cosine between N embeddings and their targets, both (N, D)."""
    return 1 - F.cosine_similarity(embeddings, targets, dim=1).mean()


def squared_loss(embeddings: Tensor, targets: Tensor) -> Tensor:
    """Compute the mean squared distance between N embeddings and their targets, both (N, D).

    The embeddings are first scaled to length 1. The targets must already have length 1.
    """
    return (F.normalize(embeddings, dim=1) - targets).square().sum(1).mean()
