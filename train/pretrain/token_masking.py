"""How many tokens of a text are predicted, and which tokens stand in their slots."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simllm.model.tokenizer import MASK_ID, SPECIAL_TOKENS
from train.pretrain.permutation import Ints


def predicted_counts(lengths: Ints, probability: float) -> Ints:
    """Compute the (B,) predicted tokens of texts of (B,) lengths: `probability` of them, halves rounded to
    even.
    """
    return np.rint(lengths * probability).astype(np.int64)


def noisy_slot_tokens(
    originals: Ints, vocab_size: int, draw: NDArray[np.float64], token: NDArray[np.float64]
) -> Ints:
    """Choose the token in each slot, as in BERT: 80% <mask>, 10% the original, 10% any ordinary token.

    All arrays are (M,). `draw` and `token` are random numbers from [0, 1): for the choice among the three
    cases, and for the ordinary token.
    """
    ordinary = len(SPECIAL_TOKENS) + (token * (vocab_size - len(SPECIAL_TOKENS))).astype(np.int64)
    return np.select([draw < 0.8, draw < 0.9], [np.int64(MASK_ID), originals], ordinary)
