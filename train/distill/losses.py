"""Losses that compare a student's embeddings, or their cosines, with the teachers'."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from train.distill.config import ImitationConfig


def cosine_loss(embeddings: Tensor, targets: Tensor) -> Tensor:
    """Compute the mean of 1 - cosine between (N, D) embeddings and their targets."""
    return 1 - F.cosine_similarity(embeddings, targets, dim=1).mean()


def squared_loss(embeddings: Tensor, targets: Tensor) -> Tensor:
    """Compute the mean squared distance between (N, D) embeddings, scaled to length 1, and unit targets."""
    return (F.normalize(embeddings, dim=1) - targets).square().sum(1).mean()


def neighbour_distillation_loss(embeddings: Tensor, cosines: Tensor, temperature: float) -> Tensor:
    """Compute how much the similarities among N texts differ between a student and a teacher.

    For each text, a softmax over the cosines with the other texts, divided by the temperature, makes a
    distribution. The loss is the mean of KL(teacher || student). `embeddings` are the student's (N, D), of
    any length; `cosines` are the teacher's (N, N).
    """
    unit = F.normalize(embeddings, dim=1)
    # A text is not its own neighbour. -1e4 instead of -inf keeps the KL divergence free of 0 * inf.
    own = torch.eye(len(unit), dtype=torch.bool, device=unit.device)
    student = (unit @ unit.T / temperature).masked_fill(own, -1e4).log_softmax(dim=1)
    teacher = (cosines / temperature).masked_fill(own, -1e4).log_softmax(dim=1)
    return F.kl_div(student, teacher, reduction="batchmean", log_target=True)


def weighted_loss(
    config: ImitationConfig, embeddings: Tensor, targets: Tensor, cosines: Tensor, temperature: float
) -> Tensor:
    """Compute the weighted sum of the three losses for N texts; a loss with weight 0 is not computed."""
    loss = embeddings.new_zeros(())
    if config.cosine_weight:
        loss = loss + config.cosine_weight * cosine_loss(embeddings, targets)
    if config.squared_weight:
        loss = loss + config.squared_weight * squared_loss(embeddings, targets)
    if config.similarity_weight:
        loss = loss + config.similarity_weight * neighbour_distillation_loss(embeddings, cosines, temperature)
    return loss
