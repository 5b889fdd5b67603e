"""The losses of a distillation."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F


def cosine_loss(embeddings: Tensor, targets: Tensor) -> Tensor:
    """Return the mean of 1 - cosine between (N, D) embeddings and their (N, D) targets."""
    return 1 - F.cosine_similarity(embeddings, targets, dim=1).mean()


def squared_loss(embeddings: Tensor, targets: Tensor) -> Tensor:
    """Return the mean squared distance of (N, D) embeddings, scaled to length 1, from (N, D) targets."""
    return (F.normalize(embeddings, dim=1) - targets).square().sum(1).mean()


def similarity_loss(embeddings: Tensor, cosines: Tensor, temperature: float) -> Tensor:
    """Return the divergence of the student's neighbours from the teachers' (Fang et al., "SEED", 2021).

    Each text has a softmax over the cosines with all other texts; the loss is the Kullback-Leibler
    divergence between the teachers' and the student's, in nats.

    Args:
        embeddings: (N, D) of the student.
        cosines: (N, N) of the teachers, -1 to 1.
        temperature: Of both softmaxes.
    """
    unit = F.normalize(embeddings, dim=1)
    itself = torch.eye(len(unit), dtype=torch.bool, device=unit.device)
    student = (unit @ unit.T / temperature).masked_fill(itself, -1e4).log_softmax(dim=1)
    teacher = (cosines / temperature).masked_fill(itself, -1e4).log_softmax(dim=1)
    return F.kl_div(student, teacher, reduction="batchmean", log_target=True)
