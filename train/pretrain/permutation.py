"""Input of permuted language modelling as in MPNet: shuffled tokens, and placeholders for predicted tokens.

The n tokens of a text are permuted. The model predicts the last m tokens, one after the other. These m
tokens are called "originals", and the other tokens "context". Each original also has a placeholder at its
position, called "slot" (dummy token in the paper). A text becomes two sequences of rows, called "streams":

    content stream: n - m context tokens | m originals | m slots
    query stream:   m rows that make the predictions; their input is a copy of the m slots

All rows see (attend to) only rows of the content stream. Below, "slot" means a row of the content stream.

The i-th row of the query stream predicts the i-th original. For example, the text "a b c d" is permuted to
"c a d b", and m is 2. The first row of the query stream predicts d. It sees c, a, and the slots of d and b.
The second row predicts b. It sees c, a, d, and the slot of b.

Every row sees all context tokens. For each original, a row sees either the original or its slot:

- The i-th row of the query stream sees the originals 1 to i - 1, and the slots of the other originals.
- The row of the i-th original sees the originals 1 to i, and the slots of the other originals.
- The rows of context tokens and slots see no original, but all slots.

Each row keeps the position that its token had before the permutation. A batch concatenates the content
streams of all texts, and then their query streams, without padding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from simllm.model.tokenizer import PAD_ID, SPECIAL_TOKENS

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class PermutedBatch:
    """A batch of B permuted texts, with T = C + M rows: the content streams of all texts, then the query
    streams.

    Attributes:
        tokens: (T,) token id of each row.
        positions: (T,) position of each row in its text before the permutation.
        texts: (T,) index of each row's text, from 0.
        visible_originals: (T,) number v: the row sees the first v originals of its text, and the slots of the
            others.
        prediction_turns: (C,) 0 for context, i for the i-th original of its text (from 1), -i for its slot.
        targets: (M,) token ids to predict in the query streams.
        shape: (B, 2) number of tokens n and of predicted tokens m of each text.
    """

    tokens: Tensor
    positions: Tensor
    texts: Tensor
    visible_originals: Tensor
    prediction_turns: Tensor
    targets: Tensor
    shape: Ints

    @property
    def text_tokens(self) -> int:
        """Number of tokens of all texts, without slots and padding."""
        return int(self.shape[:, 0].sum())

    @property
    def predicted(self) -> int:
        """Number of predicted tokens of all texts."""
        return int(self.shape[:, 1].sum())

    def masked(self) -> PermutedBatch:
        """Return the batch for masked language modelling (Devlin et al., "BERT", 2019): no row sees an
        original.
        """
        return replace(self, visible_originals=torch.zeros_like(self.visible_originals))

    def to(self, device: torch.device) -> PermutedBatch:
        """Copy the batch to a device; from pinned memory, the copy is asynchronous."""
        return self._each(lambda tensor: tensor.to(device, non_blocking=True))

    def pinned(self) -> PermutedBatch:
        """Copy the batch to pinned memory, which a GPU can read directly."""
        return self._each(Tensor.pin_memory)

    def _each(self, change: Callable[[Tensor], Tensor]) -> PermutedBatch:
        """Return a copy of the batch in which `change` is applied to each tensor."""
        tensors = (field.name for field in fields(self) if field.name != "shape")
        return PermutedBatch(**{name: change(getattr(self, name)) for name in tensors}, shape=self.shape)


def is_visible(visible_originals: Tensor, turns: Tensor) -> Tensor:
    """Compute whether rows with `visible_originals` may attend to columns with `turns` of the same text.

    The arguments are broadcast: R rows as (R, 1) and C columns as (C,) give (R, C) bool.
    """
    return (turns == 0) | ((turns > 0) & (turns <= visible_originals)) | (-turns > visible_originals)


def permute_positions(tokens: Ints, lengths: Ints, noise: NDArray[np.float64]) -> Ints:
    """Put the positions of each text in random order, with those of special tokens first.

    `tokens` and `noise`, random numbers from [0, 1), are (N,) for all texts, `lengths` is (B,). Returns (N,)
    positions in their texts: `<s> a b </s>` may get 0, 3, 2, 1.
    """
    inside = np.arange(lengths.max(initial=0)) < lengths[:, None]
    keys = np.full(inside.shape, np.inf)  # a row for each text: sorted faster than all tokens at once
    # Special tokens come first, and are never predicted: that would teach nothing, and in short texts they
    # would be a large part of the predicted tokens.
    keys[inside] = np.where(tokens < len(SPECIAL_TOKENS), -1.0, noise)
    return keys.argsort(1, kind="stable")[inside]


def predicted_indices(lengths: Ints, predicted: Ints, order: Ints) -> Ints:
    """Return the (M,) indices of the predicted tokens among all N tokens that are not permuted.

    They follow the order of the texts and, within a text, the order of prediction. `lengths` and `predicted`
    are (B,), `order` is the (N,) result of `permute_positions`.
    """
    text, place, starts = ragged_indices(lengths)
    return (starts[text] + order)[place >= (lengths - predicted)[text]]


def lay_out_batch(tokens: Ints, lengths: Ints, predicted: Ints, order: Ints, slots: Ints) -> PermutedBatch:
    """Build a batch of N + 2 M rows from the (N,) tokens of B texts, which are not permuted.

    `order` is the (N,) result of `permute_positions`, `slots` the (M,) token ids of `noisy_slot_tokens`; both
    follow the order of the texts.
    """
    text, place, starts = ragged_indices(lengths)
    is_target = place >= (lengths - predicted)[text]
    ordered, target_text, target_position = tokens[starts[text] + order], text[is_target], order[is_target]
    turn = ragged_indices(predicted)[1] + 1
    first_row = ragged_indices(lengths + predicted)[2]
    rows = first_row[text] + place
    slot_rows = (first_row + lengths)[target_text] + turn - 1
    # The content streams lie before this row, the query streams after it.
    content = len(rows) + len(slot_rows)

    def fill(of_tokens: Ints, of_slots: Ints | int, of_queries: Ints) -> Tensor:
        filled = np.empty(content + len(turn), np.int64)
        filled[rows], filled[slot_rows], filled[content:] = of_tokens, of_slots, of_queries
        return torch.from_numpy(filled)

    own_turn = np.zeros_like(tokens)
    own_turn[is_target] = turn
    return PermutedBatch(
        tokens=fill(ordered, slots, slots),
        positions=fill(order, target_position, target_position),
        texts=fill(text, target_text, target_text),
        # An original sees itself and the earlier ones, a slot none, a query the earlier ones.
        visible_originals=fill(own_turn, 0, turn - 1),
        prediction_turns=fill(own_turn, -turn, turn)[:content],
        targets=torch.from_numpy(ordered[is_target]),
        shape=np.stack([lengths, predicted], 1),
    )


def ragged_indices(lengths: Ints) -> tuple[Ints, Ints, Ints]:
    """Number the N rows of B texts that follow one another: (N,) text, (N,) place in it, (B,) first row.

    Lengths of 2 and 3 give the texts 0, 0, 1, 1, 1, the places 0, 1, 0, 1, 2, and the first rows 0, 2.
    """
    starts = np.cumsum(lengths) - lengths
    text = np.repeat(np.arange(len(lengths)), lengths)
    return text, np.arange(len(text)) - starts[text], starts


def by_position(batch: PermutedBatch) -> PermutedBatch:
    """Sort the rows of each text by position in both streams, a slot after its original.

    The model computes the same, since attention does not depend on the order of rows.
    """
    content = len(batch.prediction_turns)
    place = 2 * (batch.texts * (int(batch.positions.max()) + 1) + batch.positions)
    place[:content] += batch.prediction_turns < 0
    first, queries = place[:content].argsort(), place[content:].argsort()
    order = torch.cat([first, content + queries])
    return replace(
        batch,
        tokens=batch.tokens[order],
        positions=batch.positions[order],
        texts=batch.texts[order],
        visible_originals=batch.visible_originals[order],
        prediction_turns=batch.prediction_turns[first],
        targets=batch.targets[queries],
    )


def pad_streams(batch: PermutedBatch, step: int) -> PermutedBatch:
    """Pad the two streams of a batch to multiples of `step` rows; all padding belongs to one further text.

    Padded batches have few distinct shapes, and a model is compiled once for each shape.
    """
    content, queries = len(batch.prediction_turns), len(batch.targets)
    more_content, more_queries = -content % step, -queries % step

    def filled(rows: Tensor, value: int) -> Tensor:
        both = [rows[:content], rows.new_full((more_content,), value)]
        if len(rows) > content:
            both += [rows[content:], rows.new_full((more_queries,), value)]
        return torch.cat(both)

    return PermutedBatch(
        tokens=filled(batch.tokens, PAD_ID),
        positions=filled(batch.positions, 0),
        texts=filled(batch.texts, len(batch.shape)),
        visible_originals=filled(batch.visible_originals, 0),
        prediction_turns=filled(batch.prediction_turns, 0),
        targets=torch.cat([batch.targets, batch.targets.new_full((more_queries,), PAD_ID)]),
        shape=batch.shape,
    )
