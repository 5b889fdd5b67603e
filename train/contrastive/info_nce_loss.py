"""The InfoNCE loss, also known as multiple negatives ranking loss."""

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
    """Compute the symmetric InfoNCE loss (van den Oord et al., 2018; Gao et al., "SimCSE", 2021).

    Args:
        first: (B, D) embeddings of the positive pairs' first texts.
        second: (B, D) embeddings of the positive pairs' second texts.
        same_meaning: (B, B) bool; where true, row i of `first` and row j of `second` are no negatives.
        temperature: The temperature of the softmax over cosines.
        negatives: (H, D) embeddings of hard negatives, which are compared only with `first`.
        weight: Weight of a hard negative in the softmax; other negatives have weight 1.
        false_hard_negatives: (B, H) bool; where true, hard negative j is ignored for row i of `first`.
    """
    a, b = F.normalize(first, dim=1), F.normalize(second, dim=1)
    logits = a @ b.T / temperature
    own = torch.eye(len(a), dtype=torch.bool, device=a.device)
    # The diagonal holds the positive pairs themselves, which `same_meaning` marks, too.
    logits = logits.masked_fill(same_meaning & ~own, -torch.inf)
    forward = logits
    if negatives is not None and len(negatives):
        # Adding log(weight) to a logit multiplies its term in the softmax by the weight.
        hard = a @ F.normalize(negatives, dim=1).T / temperature + math.log(weight)
        if false_hard_negatives is not None:
            hard = hard.masked_fill(false_hard_negatives, -torch.inf)
        forward = torch.cat([logits, hard], dim=1)
    targets = torch.arange(len(a), device=a.device)
    return (F.cross_entropy(forward, targets) + F.cross_entropy(logits.T, targets)) / 2
