"""Pretraining batches: the texts of each update and their permutations, from (seed, update) alone."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from simllm.errors import InputError
from train.pretrain.permutation import (
    Ints,
    PermutedBatch,
    keyed_uniform,
    lay_out_batch,
    noisy_slot_tokens,
    permute_positions,
    predicted_counts,
    predicted_indices,
    ragged_indices,
)
from train.tokens.shards import Shards


class PretrainingBatches:
    """The texts of each update, cut into batches.

    The texts of all epochs, shuffled for each epoch, form one endless sequence of tokens. Update u
    consists of the texts that begin in its u-th stretch of `update_tokens` tokens; a batch consists
    of the texts that begin in its part of that stretch. Therefore each text occurs once per epoch,
    for any number of processes, and any update can be computed directly. The permutation of a text
    depends on the text, the epoch and the seed. Texts that are too short for a predicted token are
    left out.

    Args:
        shards: The tokenized texts.
        vocab_size: Number of tokens in the vocabulary.
        probability: Share of the tokens of a text that is predicted.
        update_tokens: Approximate tokens of text in an update.
        seed: The seed of order and permutations.
        masked: Whether to make batches for masked instead of permuted language modelling.

    Raises:
        InputError: No text is long enough.
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
        self.texts = np.flatnonzero((self.predicted > 0) & (self.predicted <= shards.lengths - 2))
        if not len(self.texts):
            raise InputError("no text is long enough to predict a token of; the corpus is too small")
        self.epoch_tokens = int(shards.lengths[self.texts].sum())
        self._epoch = lru_cache(maxsize=2)(self._shuffle)

    def shape(self) -> Ints:
        """Return (N, 2) number of tokens n and of predicted tokens m of the texts of an epoch."""
        return np.stack([self.shards.lengths[self.texts], self.predicted[self.texts]], 1)

    def texts_of_update(self, number: int, batches: int) -> list[tuple[Ints, Ints]]:
        """Return the texts of an update, cut into batches.

        Args:
            number: The update, counted from 0.
            batches: Number of batches.

        Returns:
            For each batch, the (B,) epochs and the (B,) indices of its texts.
        """
        first, parts = number * self.update_tokens, []
        edges = [first + part * self.update_tokens // batches for part in range(batches + 1)]
        for begin, end in itertools.pairwise(edges):
            chosen = list(self._texts_between(begin, end))
            parts.append((np.concatenate([e for e, _ in chosen]), np.concatenate([t for _, t in chosen])))
        return parts

    def count_predicted(self, parts: list[tuple[Ints, Ints]]) -> int:
        """Return the number of predicted tokens in the batches of `texts_of_update`."""
        return sum(int(self.predicted[texts].sum()) for _, texts in parts)

    def make_batch(self, epochs: Ints, texts: Ints) -> PermutedBatch:
        """Permute texts and sort them by length.

        Args:
            epochs: (B,) epochs, on which the permutations depend.
            texts: (B,) indices of the texts.
        """
        by_length = np.argsort(self.shards.lengths[texts], kind="stable")
        epochs, texts = epochs[by_length], texts[by_length]
        lengths, predicted = self.shards.lengths[texts], self.predicted[texts]
        text, place, _ = ragged_indices(lengths)
        keys = self.first_token[texts][text] + place
        tokens, keys = self.shards.read_tokens(keys), keys + epochs[text] * self.shards.tokens
        order = permute_positions(tokens, lengths, keyed_uniform(combined_seed(self.seed, 0), keys))
        hidden = predicted_indices(lengths, predicted, order)
        draw, token = (keyed_uniform(combined_seed(self.seed, use), keys[hidden]) for use in (1, 2))
        slots = noisy_slot_tokens(tokens[hidden], self.vocab_size, draw, token)
        batch = lay_out_batch(tokens, lengths, predicted, order, slots)
        return batch.masked() if self.masked else batch

    def evaluation_texts(self, texts: int, batch_tokens: int) -> list[Ints]:
        """Return the indices of the first `texts` texts, in parts of about `batch_tokens` tokens."""
        chosen = self.texts[self.texts < texts]
        chosen = chosen[np.argsort(self.shards.lengths[chosen], kind="stable")]
        ends = np.cumsum(self.shards.lengths[chosen])
        return np.split(chosen, np.flatnonzero(np.diff(ends // batch_tokens)) + 1)

    def _texts_between(self, begin: int, end: int) -> Iterator[tuple[Ints, Ints]]:
        """Yield epochs and indices of the texts that begin between two tokens of the endless sequence."""
        for epoch in range(begin // self.epoch_tokens, (end - 1) // self.epoch_tokens + 1):
            texts, starts = self._epoch(epoch)
            within = np.array([begin, end]) - epoch * self.epoch_tokens
            low, high = np.searchsorted(starts, within)
            yield np.full(high - low, epoch), texts[low:high]

    def _shuffle(self, epoch: int) -> tuple[Ints, Ints]:
        """Return the texts in the order of an epoch, and the first token of each, counted in the epoch."""
        texts = np.random.default_rng([self.seed, epoch]).permutation(self.texts)
        lengths = self.shards.lengths[texts]
        return texts, np.cumsum(lengths) - lengths


def combined_seed(*numbers: int) -> int:
    """Combine numbers into one 63-bit seed; different numbers practically never give the same seed."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> 1)
