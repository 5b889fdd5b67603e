"""The triplet loss: texts of a positive pair should be closer to each other than to their hard negatives."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F


def triplet_loss(
    first: Tensor, second: Tensor, negatives: Tensor, pairs: Tensor, temperature: float
) -> Tensor:
    """Compute a triplet loss with a soft margin (Hermans et al., "In Defense of the Triplet Loss", 2017).

    The loss is the mean of log(1 + exp((cos(text, negative) - cos(first, second)) / temperature)) over all
    hard negatives and both texts of their pairs; 0 without hard negatives. `first` and `second` are (B, D),
    `negatives` (H, D), and `pairs` (H,) is the index of each hard negative's pair.
    """
    if not len(negatives):
        # A 0 with a gradient, so that backward works.
        return first.sum() * 0
    a, b, other = (F.normalize(x, dim=1) for x in (first[pairs], second[pairs], negatives))
    positive = (a * b).sum(1)
    differences = torch.cat([(text * other).sum(1) - positive for text in (a, b)])
    return F.softplus(differences / temperature).mean()
