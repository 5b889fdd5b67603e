"""Losses of distillation. They compare a student's embeddings, or their cosines, with the teachers'."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from train.distill.config import ImitationConfig


def cosine_loss(embeddings: Tensor, targets: Tensor) -> Tensor:
    """Compute the mean of 1 - cosine between N embeddings and their targets, both (N, D)."""
    return 1 - F.cosine_similarity(embeddings, targets, dim=1).mean()


def squared_loss(embeddings: Tensor, targets: Tensor) -> Tensor:
    """Compute the mean squared distance between N embeddings and their targets, both (N, D).

    The embeddings are first scaled to length 1. The targets must already have length 1.
    """
    return (F.normalize(embeddings, dim=1) - targets).square().sum(1).mean()


def neighbour_distillation_loss(embeddings: Tensor, cosines: Tensor, temperature: float) -> Tensor:
    """Compute how much the similarities among N texts differ between a student and a teacher.

    The similarity of two texts is the cosine between their embeddings. For each text, the cosines with the
    other texts are divided by the temperature, and a softmax makes a distribution over the other texts. The
    loss is the KL divergence KL(teacher || student) between the distributions of teacher and student,
    averaged over the N texts.

    Args:
        embeddings: (N, D) embeddings from the student; they need not have norm 1.
        cosines: (N, N) cosines between the teacher's embeddings of the N texts.
        temperature: The temperature of both softmaxes.

    Returns:
        The loss, a scalar.
    """
    unit = F.normalize(embeddings, dim=1)
    own = torch.eye(len(unit), dtype=torch.bool, device=unit.device)
    student = (unit @ unit.T / temperature).masked_fill(own, -1e4).log_softmax(dim=1)
    teacher = (cosines / temperature).masked_fill(own, -1e4).log_softmax(dim=1)
    return F.kl_div(student, teacher, reduction="batchmean", log_target=True)


def weighted_loss(
    config: ImitationConfig, embeddings: Tensor, targets: Tensor, cosines: Tensor, temperature: float
) -> Tensor:
    """Compute the loss of distillation for N texts, as a weighted sum of three losses.

    The three losses are the cosine loss, the squared loss and the neighbour distillation loss.

    Args:
        config: The weights of the losses. A loss with weight 0 is not computed.
        embeddings: (N, D) embeddings from the student (the encoder that is being trained).
        targets: (N, D) embeddings that the student should learn.
        cosines: (N, N) cosines between the N texts. Entry (i, j) is the cosine between a teacher's
            embeddings of texts i and j, averaged over all teachers (larger encoders).
        temperature: The temperature of the softmaxes in `neighbour_distillation_loss`.

    Returns:
        The loss, a scalar.
    """
    loss = embeddings.new_zeros(())
    if config.cosine_weight:
        loss = loss + config.cosine_weight * cosine_loss(embeddings, targets)
    if config.squared_weight:
        loss = loss + config.squared_weight * squared_loss(embeddings, targets)
    if config.similarity_weight:
        loss = loss + config.similarity_weight * neighbour_distillation_loss(embeddings, cosines, temperature)
    return loss
