"""The losses of contrastive training, and the frozen copy of the initial encoder that one of them needs."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from simllm.model.network import Encoder
from train.distill.task import neighbour_distillation_loss
from train.runtime.gradients import autocast


class Anchor:
    """A frozen copy of the initial encoder.

    `pool` computes (B, D) embeddings from (B, L, D) states of tokens and their (B, L) mask; `precision` is
    "fp32", "bf16" or "fp16".
    """

    def __init__(
        self, encoder: Encoder, pool: Callable[[Tensor, Tensor], Tensor], precision: str, device: torch.device
    ) -> None:
        self.encoder = copy.deepcopy(encoder).requires_grad_(False)
        self.pool, self.precision, self.device = pool, precision, device

    def embed(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """Compute (B, D) float32 embeddings without gradients, from (B, L) token ids and their mask."""
        with torch.no_grad(), autocast(self.device, self.precision):
            return self.pool(self.encoder(tokens, mask), mask).float()


def anchor_loss(embeddings: Tensor, anchored: Tensor, temperature: float) -> Tensor:
    """Compute how much training has changed the similarities of N texts to each other.

    A softmax over a text's cosines with the other texts gives a distribution. The loss is the mean KL
    divergence KL(anchor || encoder) of these distributions. Both embeddings are (N, D).
    """
    unit = F.normalize(anchored.detach(), dim=1)
    # The anchor plays the part of the teacher of a distillation.
    return neighbour_distillation_loss(embeddings, unit @ unit.T, temperature)


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
