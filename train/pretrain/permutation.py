"""Permuted inputs with position-keeping slots (MPNet; SIMLLM, section 4.1).

A text of n tokens, permuted; its last m tokens are predicted. Its rows:

    content stream: n - m context tokens | m originals | m slots
    query stream:   m slots

Every row sees each position exactly once: as a context token, as an original that was
predicted before it, or as a slot. Positions travel with the tokens, so that the order of
the rows carries no meaning. Many texts lie one after the other, of any lengths and without
padding: the content streams of all, then the query streams of all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from simllm.model.tokenizer import MASK_ID, PAD_ID, SPECIAL_TOKENS

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Permuted:
    """B texts, ready for the encoder: T rows, the first C of them the content stream."""

    tokens: Tensor  # (T,)
    positions: Tensor  # (T,)
    texts: Tensor  # (T,) to which of the texts a row belongs
    knows: Tensor  # (T,) how many originals of its text a row sees
    turns: Tensor  # (C,) 0 context, i the original that is predicted i-th, -i its slot
    targets: Tensor  # (M,) of the query stream's rows
    shape: Ints  # (B, 2) n and m of each text, as the rows lie

    @property
    def text_tokens(self) -> int:
        """Tokens of the texts: slots and padding not counted."""
        return int(self.shape[:, 0].sum())

    @property
    def predicted(self) -> int:
        """Number of predicted tokens."""
        return int(self.shape[:, 1].sum())

    def masked(self) -> Permuted:
        """The same texts for masked language modelling (Devlin et al., "BERT", 2019): no row sees an
        original, so that every slot is filled without knowing the others.
        """
        return replace(self, knows=torch.zeros_like(self.knows))

    def to(self, device: torch.device) -> Permuted:
        """The same batch on a device; copied while the device works, where memory is pinned."""
        return self._each(lambda tensor: tensor.to(device, non_blocking=True))

    def pinned(self) -> Permuted:
        """The same batch in memory that a GPU can read by itself."""
        return self._each(Tensor.pin_memory)

    def _each(self, change: Callable[[Tensor], Tensor]) -> Permuted:
        tensors = (field.name for field in fields(self) if field.name != "shape")
        return Permuted(**{name: change(getattr(self, name)) for name in tensors}, shape=self.shape)


def predicted_counts(lengths: Ints, probability: float) -> Ints:
    """Number of predicted tokens m of texts of these lengths; half rounds to even."""
    return np.rint(lengths * probability).astype(np.int64)


def visible(knows: Tensor, turns: Tensor) -> Tensor:
    """Whether a row of the same text sees a column: the context, the originals it knows, other slots."""
    return (turns == 0) | ((turns > 0) & (turns <= knows)) | (-turns > knows)


def uniform(seed: int, keys: Ints) -> NDArray[np.float64]:
    """One number from [0, 1) for every key: the same for the same seed, in whatever company.

    SplitMix64 (Steele, Lea and Flood, 2014) in counter mode.
    """
    with np.errstate(over="ignore"):
        x = keys.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((x ^ (x >> np.uint64(31))) >> np.uint64(11)).astype(np.float64) / 2.0**53


def orders(tokens: Ints, lengths: Ints, noise: NDArray[np.float64]) -> Ints:
    """(N,) a permutation of every text's positions; the last of each are to be predicted.

    The boundary tokens <s> and </s> always stay in the context: predicting them teaches
    nothing, and in a short text they would be a good part of what is predicted.
    """
    noise = np.where(tokens < len(SPECIAL_TOKENS), -1.0, noise)
    text, _, starts = ragged(lengths)
    return np.lexsort((noise, text)) - starts[text]


def noisy_slots(
    originals: Ints, vocab_size: int, draw: NDArray[np.float64], token: NDArray[np.float64]
) -> Ints:
    """(M,) slot contents: 80% <mask>, 10% a uniformly drawn ordinary token, 10% the original."""
    ordinary = len(SPECIAL_TOKENS) + (token * (vocab_size - len(SPECIAL_TOKENS))).astype(np.int64)
    return np.select([draw < 0.8, draw < 0.9], [np.int64(MASK_ID), originals], ordinary)


def predicted_places(lengths: Ints, predicted: Ints, order: Ints) -> Ints:
    """(M,) where in (N,) the predicted tokens stand, in the order of their prediction."""
    text, place, starts = ragged(lengths)
    return (starts[text] + order)[place >= (lengths - predicted)[text]]


def permute(tokens: Ints, lengths: Ints, predicted: Ints, order: Ints, slots: Ints) -> Permuted:
    """Lay out B texts.

    tokens (N,) of all texts, lengths (B,) n, predicted (B,) m, order (N,) a permutation of
    every text's positions, slots (M,) contents of the slots in the order of prediction.
    """
    text, place, starts = ragged(lengths)
    is_target = place >= (lengths - predicted)[text]
    ordered, target_text, target_position = tokens[starts[text] + order], text[is_target], order[is_target]
    turn = ragged(predicted)[1] + 1
    first_row = ragged(lengths + predicted)[2]
    rows = first_row[text] + place
    slot_rows = (first_row + lengths)[target_text] + turn - 1
    content = len(rows) + len(slot_rows)

    def fill(of_tokens: Ints, of_slots: Ints | int, of_queries: Ints) -> Tensor:
        filled = np.empty(content + len(turn), np.int64)
        filled[rows], filled[slot_rows], filled[content:] = of_tokens, of_slots, of_queries
        return torch.from_numpy(filled)

    own_turn = np.zeros_like(tokens)
    own_turn[is_target] = turn
    return Permuted(
        tokens=fill(ordered, slots, slots),
        positions=fill(order, target_position, target_position),
        texts=fill(text, target_text, target_text),
        knows=fill(own_turn, 0, turn - 1),
        turns=fill(own_turn, -turn, turn)[:content],
        targets=torch.from_numpy(ordered[is_target]),
        shape=np.stack([lengths, predicted], 1),
    )


def ragged(lengths: Ints) -> tuple[Ints, Ints, Ints]:
    """Of rows that lie text after text: each one's text, its place there; each text's first row."""
    starts = np.cumsum(lengths) - lengths
    text = np.repeat(np.arange(len(lengths)), lengths)
    return text, np.arange(len(text)) - starts[text], starts


def fill_up(batch: Permuted, step: int) -> Permuted:
    """Add rows of padding to both streams, up to multiples of `step`, as a text of its own.

    A compiled model is then met by few shapes.
    """
    content, queries = len(batch.turns), len(batch.targets)
    more_content, more_queries = -content % step, -queries % step

    def filled(rows: Tensor, value: int) -> Tensor:
        both = [rows[:content], rows.new_full((more_content,), value)]
        if len(rows) > content:
            both += [rows[content:], rows.new_full((more_queries,), value)]
        return torch.cat(both)

    return Permuted(
        tokens=filled(batch.tokens, PAD_ID),
        positions=filled(batch.positions, 0),
        texts=filled(batch.texts, len(batch.shape)),
        knows=filled(batch.knows, 0),
        turns=filled(batch.turns, 0),
        targets=torch.cat([batch.targets, batch.targets.new_full((more_queries,), PAD_ID)]),
        shape=batch.shape,
    )
