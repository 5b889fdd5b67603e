"""The batches of pretraining: texts of an update, tokens to predict, and the tokens in their slots."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from simllm.errors import InputError
from simllm.model.tokenizer import MASK_ID, SPECIAL_TOKENS
from train.pretrain.permutation import (
    Ints,
    PermutedBatch,
    lay_out_batch,
    permute_positions,
    predicted_indices,
    ragged_indices,
)
from train.runtime.batching import combined_seed, keyed_uniform
from train.tokens.shards import Shards


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


class PretrainingBatches:
    """The texts of each update, divided into batches.

    The texts of all epochs form one endless sequence of tokens, in a new random order for each epoch. An
    update has the texts that begin in the next `update_tokens` tokens; each of its n batches has those that
    begin in the next n-th of these tokens. So each text occurs once in an epoch, whatever the number of
    batches, and any update can be computed without the earlier ones.

    A share `probability` of a text's tokens is predicted. The permutation depends on the text, the epoch and
    the seed. Texts that are too short to predict a token are left out.
    """

    def __init__(
        self,
        shards: Shards,
        vocab_size: int,
        probability: float,
        update_tokens: int,
        seed: int,
        masked: bool = False,
    ) -> None:
        self.shards = shards
        self.vocab_size = vocab_size
        self.update_tokens = update_tokens
        self.seed = seed
        self.masked = masked
        self.first_token = np.cumsum(shards.lengths) - shards.lengths
        self.predicted = predicted_counts(shards.lengths, probability)
        # `<s>` and `</s>` are never predicted.
        self.texts = np.flatnonzero((self.predicted > 0) & (self.predicted <= shards.lengths - 2))
        if not len(self.texts):
            raise InputError("no text is long enough to predict a token of; the corpus is too small")
        self.epoch_tokens = int(shards.lengths[self.texts].sum())
        # An update touches at most the end of one epoch and the start of the next, unless epochs are tiny.
        self._epoch = lru_cache(maxsize=2)(self._shuffle)

    def text_shapes(self) -> Ints:
        """Return (N, 2): the numbers of tokens and of predicted tokens of the N texts of an epoch."""
        return np.stack([self.shards.lengths[self.texts], self.predicted[self.texts]], 1)

    def texts_of_update(self, number: int, batches: int) -> list[tuple[Ints, Ints]]:
        """Choose the texts of an update: the (B,) epochs and (B,) indices of the texts of each batch."""
        first, parts = number * self.update_tokens, []
        edges = [first + part * self.update_tokens // batches for part in range(batches + 1)]
        for begin, end in itertools.pairwise(edges):
            chosen = list(self._texts_between(begin, end))
            parts.append((np.concatenate([e for e, _ in chosen]), np.concatenate([t for _, t in chosen])))
        return parts

    def count_predicted(self, parts: list[tuple[Ints, Ints]]) -> int:
        """Count the predicted tokens in the result of `texts_of_update`."""
        return sum(int(self.predicted[texts].sum()) for _, texts in parts)

    def make_batch(self, epochs: Ints, texts: Ints) -> PermutedBatch:
        """Permute texts, sorted by length, and choose the tokens to predict; both arguments are (B,)."""
        by_length = np.argsort(self.shards.lengths[texts], kind="stable")
        epochs, texts = epochs[by_length], texts[by_length]
        lengths, predicted = self.shards.lengths[texts], self.predicted[texts]
        text, place, _ = ragged_indices(lengths)
        keys = self.first_token[texts][text] + place
        # A key numbers a token through all epochs: its random numbers depend on nothing else.
        tokens, keys = self.shards.read_tokens(keys), keys + epochs[text] * self.shards.tokens
        order = permute_positions(tokens, lengths, keyed_uniform(combined_seed(self.seed, 0), keys))
        hidden = predicted_indices(lengths, predicted, order)
        draw, token = (keyed_uniform(combined_seed(self.seed, use), keys[hidden]) for use in (1, 2))
        slots = noisy_slot_tokens(tokens[hidden], self.vocab_size, draw, token)
        batch = lay_out_batch(tokens, lengths, predicted, order, slots)
        return batch.masked() if self.masked else batch

    def evaluation_texts(self, texts: int, batch_tokens: int) -> list[Ints]:
        """Take the usable ones of the first `texts` texts: the indices of each batch, sorted by length
        throughout.
        """
        chosen = self.texts[self.texts < texts]
        chosen = chosen[np.argsort(self.shards.lengths[chosen], kind="stable")]
        ends = np.cumsum(self.shards.lengths[chosen])
        return np.split(chosen, np.flatnonzero(np.diff(ends // batch_tokens)) + 1)

    def _texts_between(self, begin: int, end: int) -> Iterator[tuple[Ints, Ints]]:
        """Yield the epoch and the indices of the texts that begin from token `begin` to before `end` of all
        epochs.
        """
        # An update may reach over the end of an epoch into the next one.
        for epoch in range(begin // self.epoch_tokens, (end - 1) // self.epoch_tokens + 1):
            texts, starts = self._epoch(epoch)
            within = np.array([begin, end]) - epoch * self.epoch_tokens
            low, high = np.searchsorted(starts, within)
            yield np.full(high - low, epoch), texts[low:high]

    def _shuffle(self, epoch: int) -> tuple[Ints, Ints]:
        """Return the (N,) texts of an epoch in random order, and the (N,) numbers of their first tokens."""
        texts = np.random.default_rng([self.seed, epoch]).permutation(self.texts)
        lengths = self.shards.lengths[texts]
        return texts, np.cumsum(lengths) - lengths
