"""The CoSENT loss, which teaches the encoder to rank text pairs by their human ratings."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F


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
