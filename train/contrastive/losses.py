"""Losses over embeddings: what belongs together is drawn together, the more alike the nearer."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F


def info_nce(
    first: Tensor,
    second: Tensor,
    same: Tensor,
    temperature: float,
    negatives: Tensor | None = None,
    weight: float = 1.0,
    known: Tensor | None = None,
) -> Tensor:
    """Symmetric InfoNCE of (B, D) against (B, D): row i of one belongs to row i of the other.

    The negatives of a row are all other rows, but for those that (B, B) `same` marks as
    meaning the same. Hard `negatives` (H, D) are negatives of each row of `first`, too, but for
    those that (B, H) `known` marks likewise, and count `weight` times (van den Oord et al.,
    2018; with hard negatives: Gao et al., "SimCSE", 2021).
    """
    a, b = F.normalize(first, dim=1), F.normalize(second, dim=1)
    logits = a @ b.T / temperature
    own = torch.eye(len(a), dtype=torch.bool, device=a.device)
    logits = logits.masked_fill(same & ~own, -torch.inf)
    forward = logits
    if negatives is not None and len(negatives):
        hard = a @ F.normalize(negatives, dim=1).T / temperature + math.log(weight)
        if known is not None:
            hard = hard.masked_fill(known, -torch.inf)
        forward = torch.cat([logits, hard], dim=1)
    targets = torch.arange(len(a), device=a.device)
    return (F.cross_entropy(forward, targets) + F.cross_entropy(logits.T, targets)) / 2


def cosent(first: Tensor, second: Tensor, ratings: Tensor, sets: Tensor, temperature: float) -> Tensor:
    """Ranking loss of rated pairs (B, D), (B, D): of two pairs of one set, the one with the
    higher of the (B,) ratings is to have the higher cosine (Su, "CoSENT", 2022).

    log(1 + sum exp((cosine of the less alike - cosine of the more alike) / temperature)).
    """
    cosines = F.cosine_similarity(first, second, dim=1) / temperature
    lower = (ratings[:, None] < ratings[None, :]) & (sets[:, None] == sets[None, :])
    differences = (cosines[:, None] - cosines[None, :])[lower]
    return torch.logsumexp(F.pad(differences, (1, 0)), dim=0)
