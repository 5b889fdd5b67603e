"""The triplet loss: the two texts of a pair should be closer to each other than to the pair's hard negatives.

The two texts have the same meaning. A hard negative has similar words, but another meaning.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F


def triplet_loss(
    first: Tensor, second: Tensor, negatives: Tensor, pairs: Tensor, temperature: float
) -> Tensor:
    """Compute a triplet loss with a soft margin (Hermans et al., "In Defense of the Triplet Loss", 2017).

    Row i of `first` and row i of `second` are a positive pair: texts with the same meaning. A hard negative
    has words like those of one pair, but another meaning. The loss is low if the two texts of this pair are
    closer to each other than each of them is to the hard negative. No other texts are compared.

    The loss is the mean of log(1 + exp((cos(text, negative) - cos(first, second)) / temperature)) over all
    hard negatives and both texts of their pairs.

    Args:
        first: (B, D) embeddings of the pairs' first texts.
        second: (B, D) embeddings of the pairs' second texts.
        negatives: (H, D) embeddings of hard negatives.
        pairs: (H,) index of the pair to which each hard negative belongs, from 0 to B - 1.
        temperature: The positive number by which differences of cosines are divided.

    Returns:
        The loss, a scalar; 0 without hard negatives.
    """
    if not len(negatives):
        return first.sum() * 0
    a, b, other = (F.normalize(x, dim=1) for x in (first[pairs], second[pairs], negatives))
    positive = (a * b).sum(1)
    differences = torch.cat([(text * other).sum(1) - positive for text in (a, b)])
    return F.softplus(differences / temperature).mean()
