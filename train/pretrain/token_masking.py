"""Masking: how many tokens of a text are predicted, and which tokens the model sees in their places.

The placeholder for a predicted token is called "slot".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simllm.model.tokenizer import MASK_ID, SPECIAL_TOKENS
from train.pretrain.permutation import Ints


def predicted_counts(lengths: Ints, probability: float) -> Ints:
    """Compute how many tokens of each text the model must predict in pretraining.

    This number is the length of the text times `probability`, rounded to an integer (halves to even).

    Args:
        lengths: (B,) number of tokens of each text.
        probability: Share of tokens to predict, between 0 and 1.

    Returns:
        (B,) number of tokens to predict in each text.
    """
    return np.rint(lengths * probability).astype(np.int64)


def noisy_slot_tokens(
    originals: Ints, vocab_size: int, draw: NDArray[np.float64], token: NDArray[np.float64]
) -> Ints:
    """Choose the token in each slot (placeholder for a predicted token).

    As in BERT, about 80% of the slots get <mask>. About 10% get the very token that the model must predict
    there. About 10% get a random token that is not a special token.

    Args:
        originals: (M,) ids of the predicted tokens.
        vocab_size: Number of tokens in the vocabulary.
        draw: (M,) random numbers from [0, 1). They decide between the three cases.
        token: (M,) random numbers from [0, 1). They are scaled to the ids of the random tokens.

    Returns:
        (M,) token ids of the slots.
    """
    ordinary = len(SPECIAL_TOKENS) + (token * (vocab_size - len(SPECIAL_TOKENS))).astype(np.int64)
    return np.select([draw < 0.8, draw < 0.9], [np.int64(MASK_ID), originals], ordinary)
