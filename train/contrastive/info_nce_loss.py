"""The InfoNCE loss: texts with the same meaning should be closer to each other than to other texts.

InfoNCE is also known as multiple negatives ranking loss.
"""

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

    Row i of `first` and row i of `second` are a positive pair: texts with the same meaning. The loss is low
    if the two texts of each positive pair are closer to each other than to other texts. Row i of `first` and
    another row j of `second` are a negative pair, unless `same_meaning[i, j]` is true. Hard negatives are
    further texts, which are compared only with `first`.

    Args:
        first: (B, D) embeddings of the pairs' first texts.
        second: (B, D) embeddings of the pairs' second texts.
        same_meaning: (B, B) bool, true where row i of `first` and row j of `second` have the same meaning.
        temperature: The temperature of the softmax over cosines.
        negatives: (H, D) embeddings of hard negatives; None: no hard negatives.
        weight: Weight of a hard negative in the softmax; other negatives have weight 1.
        false_hard_negatives: (B, H) bool, true where row i of `first` and hard negative j have the same
            meaning. Such a hard negative is ignored for row i. None: no hard negative is ignored.

    Returns:
        The loss, a scalar.
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
