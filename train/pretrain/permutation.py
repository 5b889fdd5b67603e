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
    """A batch of B permuted texts: the input of MPNet's two-stream model.

    The model predicts the last tokens of each permuted text. Each row of the batch is one token or one
    placeholder. There are T = C + M rows. The first C rows are the content stream, with three kinds of rows:

    - context tokens: the tokens that are not predicted;
    - originals: the predicted tokens;
    - slots: placeholders at the positions of the originals.

    The last M rows are the query stream: one row for each predicted token. In these rows, the model makes its
    predictions.

    A row attends only to rows of its own text in the content stream: to all context tokens, to the first v
    originals, and to the slots of the other originals. The number v depends on the row.

    Attributes:
        tokens: (T,) token id of each row.
        positions: (T,) position of each row in its text before the permutation.
        texts: (T,) index of each row's text, from 0.
        visible_originals: (T,) number v of each row: how many originals of its text the row attends to.
        prediction_turns: (C,) kind of each row of the content stream: 0 for a context token, i for the i-th
            original of its text (from 1), and -i for the slot of the i-th original.
        targets: (M,) token ids to predict in the rows of the query stream.
        shape: (B, 2) for each text, the number of tokens n and the number of predicted tokens m.
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
        """Number of tokens of all texts in the batch.

        Tokens to predict are counted. Their placeholders and padding are not counted.
        """
        return int(self.shape[:, 0].sum())

    @property
    def predicted(self) -> int:
        """Number of predicted tokens of all texts."""
        return int(self.shape[:, 1].sum())

    def masked(self) -> PermutedBatch:
        """Return the batch for masked instead of permuted language modelling (Devlin et al., "BERT", 2019).

        In permuted language modelling, a prediction may use the tokens that were predicted before it. In the
        returned batch, every prediction sees placeholders instead of the predicted tokens.
        """
        return replace(self, visible_originals=torch.zeros_like(self.visible_originals))

    def to(self, device: torch.device) -> PermutedBatch:
        """Copy the batch to a device; from pinned memory, the copy is asynchronous."""
        return self._each(lambda tensor: tensor.to(device, non_blocking=True))

    def pinned(self) -> PermutedBatch:
        """Copy the batch to pinned memory, which a GPU can read directly."""
        return self._each(Tensor.pin_memory)

    def _each(self, change: Callable[[Tensor], Tensor]) -> PermutedBatch:
        """Return a copy of the batch in which the function `change` is applied to each tensor."""
        tensors = (field.name for field in fields(self) if field.name != "shape")
        return PermutedBatch(**{name: change(getattr(self, name)) for name in tensors}, shape=self.shape)


def is_visible(visible_originals: Tensor, turns: Tensor) -> Tensor:
    """Compute which columns of the attention matrix each row may attend to, if both belong to the same text.

    Some tokens of the text are predicted, in a fixed order. Each predicted token has two columns: one for the
    token itself (the original), and one for a placeholder (the slot). Every other token has one column, and
    every row may attend to it.

    Each row has a number v. The row may attend to the originals of the first v predicted tokens. For each
    later predicted token, it may attend to the slot.

    Args:
        visible_originals: The number v of each row, from `PermutedBatch.visible_originals`.
        turns: The kind of each column, from `PermutedBatch.prediction_turns`: 0 for a token that is not
            predicted, i for the original of the i-th predicted token (i counts from 1), -i for its slot.

    Returns:
        A bool tensor, true where attention is allowed. Its shape is the broadcast shape of the two arguments:
        R rows as (R, 1) and C columns as (C,) give (R, C).
    """
    return (turns == 0) | ((turns > 0) & (turns <= visible_originals)) | (-turns > visible_originals)


def permute_positions(tokens: Ints, lengths: Ints, noise: NDArray[np.float64]) -> Ints:
    """Put the positions of each text in random order, with the positions of special tokens first.

    The model will predict the tokens whose positions come last in this order. Special tokens such as <s> and
    </s> come first, so that they are never predicted. Predicting them teaches nothing, and in short texts
    they would be a large part of the predicted tokens.

    Args:
        tokens: (N,) token ids of all texts, one text after the other.
        lengths: (B,) number of tokens of each text.
        noise: (N,) random numbers from [0, 1), by which the positions of a text are sorted.

    Returns:
        (N,) positions of the tokens in their texts, from 0, in permuted order, one text after the other. For
        example, the text `<s> a b </s>` may get the positions 0, 3, 2, 1.
    """
    noise = np.where(tokens < len(SPECIAL_TOKENS), -1.0, noise)
    text, _, starts = ragged_indices(lengths)
    return np.lexsort((noise, text)) - starts[text]


def predicted_indices(lengths: Ints, predicted: Ints, order: Ints) -> Ints:
    """Find the predicted tokens in a batch of B texts: the last m tokens of each permuted text.

    The batch has N tokens in total. M of them are predicted.

    Args:
        lengths: (B,) number of tokens n of each text.
        predicted: (B,) number of predicted tokens m of each text.
        order: (N,) positions of the tokens in their texts, in permuted order, from `permute_positions`.

    Returns:
        (M,) indices of the predicted tokens in an array of all N tokens that is not permuted. This array has
        one text after the other. The indices follow the order of the texts and, within a text, the order of
        prediction.
    """
    text, place, starts = ragged_indices(lengths)
    return (starts[text] + order)[place >= (lengths - predicted)[text]]


def lay_out_batch(tokens: Ints, lengths: Ints, predicted: Ints, order: Ints, slots: Ints) -> PermutedBatch:
    """Build a batch for permuted language modelling from the tokens of B texts.

    Each row of the batch is one token or one slot (a placeholder for a predicted token). The texts follow one
    another. Each text has first its tokens in permuted order, and then its slots. After the last text, the
    batch has a second copy of the slots of all texts. The model makes its predictions in the rows of this
    second copy.

    Args:
        tokens: (N,) token ids of all texts, one text after the other, not permuted.
        lengths: (B,) number of tokens n of each text.
        predicted: (B,) number of predicted tokens m of each text.
        order: (N,) positions of the tokens in their texts, in permuted order, from `permute_positions`.
        slots: (M,) token id in each slot, usually that of <mask> (see `noisy_slot_tokens`). The texts follow
            one another. The slots of a text are in the order of prediction.

    Returns:
        The batch, with N + 2 M rows.
    """
    text, place, starts = ragged_indices(lengths)
    is_target = place >= (lengths - predicted)[text]
    ordered, target_text, target_position = tokens[starts[text] + order], text[is_target], order[is_target]
    turn = ragged_indices(predicted)[1] + 1
    first_row = ragged_indices(lengths + predicted)[2]
    rows = first_row[text] + place
    slot_rows = (first_row + lengths)[target_text] + turn - 1
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
        visible_originals=fill(own_turn, 0, turn - 1),
        prediction_turns=fill(own_turn, -turn, turn)[:content],
        targets=torch.from_numpy(ordered[is_target]),
        shape=np.stack([lengths, predicted], 1),
    )


def ragged_indices(lengths: Ints) -> tuple[Ints, Ints, Ints]:
    """Number the rows of an array in which the rows (such as tokens) of B texts follow one another.

    For example, the first text has 2 rows, and the second has 3. Then the five rows of the array belong to
    the texts 0, 0, 1, 1, 1. Within their texts, they have the numbers 0, 1, 0, 1, 2. The two texts begin at
    the rows 0 and 2 of the array.

    Args:
        lengths: (B,) number of rows of each text.

    Returns:
        Three arrays, for N rows in total: (N,) index of each row's text; (N,) number of each row within its
        text, from 0; and (B,) index of each text's first row.
    """
    starts = np.cumsum(lengths) - lengths
    text = np.repeat(np.arange(len(lengths)), lengths)
    return text, np.arange(len(text)) - starts[text], starts


def pad_streams(batch: PermutedBatch, step: int) -> PermutedBatch:
    """Pad the two streams of a batch, so that the number of rows of each stream is a multiple of `step`.

    A stream is a sequence of rows. Each row of the content stream has a token of a text, or a placeholder for
    a predicted token. Each row of the query stream predicts one token.

    Padded batches have few distinct shapes. This saves time, because a model is compiled once for each shape.
    All padding rows belong to one additional text.
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
