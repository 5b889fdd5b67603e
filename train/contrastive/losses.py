"""Losses over embeddings: InfoNCE for positive pairs, CoSENT for rated pairs."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F


def info_nce(
    first: Tensor,
    second: Tensor,
    same_meaning: Tensor,
    temperature: float,
    negatives: Tensor | None = None,
    weight: float = 1.0,
    false_hard_negatives: Tensor | None = None,
) -> Tensor:
    """Return the symmetric InfoNCE loss (van den Oord et al., 2018; Gao et al., "SimCSE", 2021).

    Row i of `first` and row i of `second` are a positive pair. All other rows are negatives, except
    for false negatives.

    Args:
        first: (B, D) embeddings.
        second: (B, D) embeddings.
        same_meaning: (B, B) bool, true for pairs of rows that are no negatives.
        temperature: The temperature of the softmax over cosines.
        negatives: (H, D) hard negatives of all rows of `first`.
        weight: How many times a hard negative counts.
        false_hard_negatives: (B, H) bool, true for hard negatives that do not count.
    """
    a, b = F.normalize(first, dim=1), F.normalize(second, dim=1)
    logits = a @ b.T / temperature
    own = torch.eye(len(a), dtype=torch.bool, device=a.device)
    logits = logits.masked_fill(same_meaning & ~own, -torch.inf)
    forward = logits
    if negatives is not None and len(negatives):
        hard = a @ F.normalize(negatives, dim=1).T / temperature + math.log(weight)
        if false_hard_negatives is not None:
            hard = hard.masked_fill(false_hard_negatives, -torch.inf)
        forward = torch.cat([logits, hard], dim=1)
    targets = torch.arange(len(a), device=a.device)
    return (F.cross_entropy(forward, targets) + F.cross_entropy(logits.T, targets)) / 2


def cosent(first: Tensor, second: Tensor, ratings: Tensor, sets: Tensor, temperature: float) -> Tensor:
    """Return the CoSENT ranking loss of rated pairs (Su, "CoSENT", 2022).

    log(1 + sum exp((cosine of the lower-rated pair - cosine of the higher-rated pair) / temperature)).

    Args:
        first: (B, D) embeddings of the first texts.
        second: (B, D) embeddings of the second texts.
        ratings: (B,) ratings.
        sets: (B,) number of the set of each pair; only pairs of one set are compared.
        temperature: The temperature of the cosines.
    """
    cosines = F.cosine_similarity(first, second, dim=1) / temperature
    lower = (ratings[:, None] < ratings[None, :]) & (sets[:, None] == sets[None, :])
    differences = (cosines[:, None] - cosines[None, :])[lower]
    return torch.logsumexp(F.pad(differences, (1, 0)), dim=0)
