"""Losses over embeddings: InfoNCE and a triplet loss for positive pairs, CoSENT for rated pairs."""

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


def cosent(first: Tensor, second: Tensor, ratings: Tensor, sets: Tensor, temperature: float) -> Tensor:
    """Compute the CoSENT loss, which ranks text pairs by their ratings (Su, "CoSENT", 2022).

    A pair with a higher rating should have a higher cosine between the embeddings of its two texts. Only
    ratings in the same data set are compared.

    The loss is log(1 + sum exp((cos(low) - cos(high)) / temperature)). The sum has a term for every two pairs
    `low` and `high` of the same data set, where `high` has the higher rating.

    Args:
        first: (B, D) embeddings of the pairs' first texts.
        second: (B, D) embeddings of the pairs' second texts.
        ratings: (B,) ratings of the pairs.
        sets: (B,) number of the data set to which each pair belongs.
        temperature: The positive number by which differences of cosines are divided.

    Returns:
        The loss, a scalar.
    """
    cosines = F.cosine_similarity(first, second, dim=1) / temperature
    lower = (ratings[:, None] < ratings[None, :]) & (sets[:, None] == sets[None, :])
    differences = (cosines[:, None] - cosines[None, :])[lower]
    return torch.logsumexp(F.pad(differences, (1, 0)), dim=0)
