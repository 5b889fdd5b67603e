"""Permuted inputs with position-keeping slots (MPNet; SIMLLM, section 4.1).

A text of n tokens, permuted; its last m tokens are predicted. Rows stand in this order:

    content stream: n - m context tokens | m originals | m slots
    query stream:   m slots

Every row sees each position exactly once: as a context token, as an original that was
predicted before it, or as a slot. Positions travel with the tokens, so that the order of
the rows carries no meaning.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

BOUNDARIES = 2  # <s> and </s>, which are never predicted


@dataclass(frozen=True)
class Permuted:
    """A batch of B texts of equal length, ready for the encoder."""

    tokens: Tensor  # (B, n + 2m) content stream, then query stream
    positions: Tensor  # (B, n + 2m)
    visible: Tensor  # (1, n + 2m, n + m) bool
    targets: Tensor  # (B, m)

    @property
    def text_tokens(self) -> int:
        """B times n: the tokens of the texts, slots not counted."""
        return self.tokens.shape[0] * (self.tokens.shape[1] - 2 * self.targets.shape[1])


def predicted_count(length: int, probability: float) -> int:
    """Number of predicted tokens m of a text of `length` tokens; half rounds to even."""
    return round(length * probability)


def visibility(length: int, predicted: int) -> Tensor:
    """Who sees whom: bool (n + 2m, n + m), rows of both streams, columns of the content."""
    context = length - predicted
    rank = torch.arange(predicted)
    earlier = rank[None, :] < rank[:, None]  # row i sees the originals before i ...
    up_to = rank[None, :] <= rank[:, None]
    plain = torch.zeros(predicted, predicted, dtype=torch.bool)
    predicted_columns = torch.cat(
        [
            torch.cat([plain[:1].expand(context, -1), ~plain[:1].expand(context, -1)], 1),
            torch.cat([up_to, ~up_to], 1),  # originals see themselves, too
            torch.cat([plain, ~plain], 1),  # slots of the content stream see no original
            torch.cat([earlier, ~earlier], 1),  # ... and slots from i on
        ]
    )
    seen = torch.ones(len(predicted_columns), context, dtype=torch.bool)
    return torch.cat([seen, predicted_columns], 1)


def permutations(texts: int, length: int, predicted: int, generator: torch.Generator) -> Tensor:
    """Draw (B, n) permutations of the positions; the last m are predicted.

    The boundary tokens <s> and </s> always stay in the context: predicting them teaches
    nothing, and in a short text they would be a good part of what is predicted.
    """
    if predicted > length - BOUNDARIES:
        raise ValueError(f"cannot predict {predicted} of {length} tokens: two are boundaries")
    noise = torch.rand(texts, length, generator=generator)
    noise[:, 0], noise[:, -1] = -2.0, -1.0
    return noise.argsort(1)


def noisy_slots(
    originals: Tensor, mask_id: int, first_ordinary: int, vocab_size: int, generator: torch.Generator
) -> Tensor:
    """Slot contents (B, m): 80% <mask>, 10% a uniformly drawn ordinary token, 10% the original."""
    draw = torch.rand(originals.shape, generator=generator)
    random = torch.randint(first_ordinary, vocab_size, originals.shape, generator=generator)
    slots = torch.where(draw < 0.8, mask_id, originals)
    return torch.where(draw >= 0.9, random, slots)


def permute(tokens: Tensor, permutation: Tensor, slots: Tensor) -> Permuted:
    """Lay out (B, n) tokens by their (B, n) permutations with (B, m) slots."""
    length, predicted = tokens.shape[1], slots.shape[1]
    ordered = tokens.gather(1, permutation)
    slot_positions = permutation[:, length - predicted :]
    return Permuted(
        tokens=torch.cat([ordered, slots, slots], 1),
        positions=torch.cat([permutation, slot_positions, slot_positions], 1),
        visible=visibility(length, predicted)[None],
        targets=ordered[:, length - predicted :],
    )
