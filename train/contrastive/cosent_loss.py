"""The CoSENT loss, which teaches the encoder to rank text pairs by their human ratings."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F


def cosent(first: Tensor, second: Tensor, ratings: Tensor, sets: Tensor, temperature: float) -> Tensor:
    """Compute the CoSENT loss, which ranks text pairs by their ratings (Su, "CoSENT", 2022).

    The loss is log(1 + sum exp((cos(low) - cos(high)) / temperature)), summed over every two pairs of the
    same data set in which `high` has the higher rating. Embeddings are (B, D); `ratings` and `sets`, the
    number of each pair's data set, are (B,).
    """
    cosines = F.cosine_similarity(first, second, dim=1) / temperature
    lower = (ratings[:, None] < ratings[None, :]) & (sets[:, None] == sets[None, :])
    differences = (cosines[:, None] - cosines[None, :])[lower]
    # The added 0 is the 1 in log(1 + sum exp(…)).
    return torch.logsumexp(F.pad(differences, (1, 0)), dim=0)
