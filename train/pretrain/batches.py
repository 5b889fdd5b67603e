"""Batches for pretraining: the texts of each update (optimizer step), with permuted tokens.

The texts and the permutations depend only on the corpus, the configuration and the number of the update.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from simllm.errors import InputError
from train.pretrain.permutation import (
    Ints,
    PermutedBatch,
    lay_out_batch,
    permute_positions,
    predicted_indices,
    ragged_indices,
)
from train.pretrain.token_masking import noisy_slot_tokens, predicted_counts
from train.runtime.seeded_random_numbers import combined_seed, keyed_uniform
from train.tokens.shards import Shards


class PretrainingBatches:
    """The texts of each update (optimizer step), divided into batches.

    The texts of all epochs form one endless sequence of tokens. Each epoch has all texts in a new random
    order. Each update has the texts that begin in the next `update_tokens` tokens of the sequence. To divide
    an update into n batches, its range of `update_tokens` tokens is cut into n equal ranges. Each batch has
    the texts that begin in one of these ranges.

    For example, `update_tokens` is 1000. Update 0 has the texts that begin at the tokens 0 to 999, and update
    1 has those that begin at the tokens 1000 to 1999. If update 0 is divided into two batches, the first
    batch has the texts that begin at the tokens 0 to 499. Each text occurs once in an epoch, whatever the
    number of batches. Any update can be computed without the earlier updates.

    The tokens of each text are permuted (put in random order). The model predicts the last tokens of this
    order. Their number is `probability` times the number of the text's tokens, rounded. The permutation
    depends on the text, the epoch and the seed. Texts that are too short to predict a token are left out.

    Args:
        shards: The tokenized corpus: the training texts, or the held-out texts.
        vocab_size: Number of tokens in the vocabulary.
        probability: Share of a text's tokens that are predicted, between 0 and 1.
        update_tokens: Approximate number of tokens in an update.
        seed: The seed of the order of texts and of the permutations.
        masked: Whether to make batches for masked instead of permuted language modelling.

    Raises:
        InputError: No text is long enough to predict a token.
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

    def text_shapes(self) -> Ints:
        """Return, for each text, the number of its tokens and how many of them the model must predict.

        Texts that are too short to predict a token are left out.

        Returns:
            (N, 2) array, with a row for each of the N texts in an epoch: the number of tokens, and the number
            of predicted tokens.
        """
        return np.stack([self.shards.lengths[self.texts], self.predicted[self.texts]], 1)

    def texts_of_update(self, number: int, batches: int) -> list[tuple[Ints, Ints]]:
        """Choose the texts of an update (optimizer step), and divide them into batches.

        Args:
            number: The number of the update, from 0.
            batches: Number of batches.

        Returns:
            For each batch of B texts, two (B,) arrays: the number of each text's epoch, and the index of each
            text in the tokenized corpus. If an epoch ends within the update, the update has texts of several
            epochs.
        """
        first, parts = number * self.update_tokens, []
        edges = [first + part * self.update_tokens // batches for part in range(batches + 1)]
        for begin, end in itertools.pairwise(edges):
            chosen = list(self._texts_between(begin, end))
            parts.append((np.concatenate([e for e, _ in chosen]), np.concatenate([t for _, t in chosen])))
        return parts

    def count_predicted(self, parts: list[tuple[Ints, Ints]]) -> int:
        """Count the tokens that the model must predict in all batches of an update (optimizer step).

        Args:
            parts: The result of `texts_of_update`. For each batch, it has two arrays: the epoch of each text
                (not used here), and the index of each text in the tokenized corpus.
        """
        return sum(int(self.predicted[texts].sum()) for _, texts in parts)

    def make_batch(self, epochs: Ints, texts: Ints) -> PermutedBatch:
        """Make a batch: sort texts by length, permute their tokens, and choose the tokens to predict.

        Args:
            epochs: (B,) number of each text's epoch. The permutation of a text changes from epoch to epoch.
            texts: (B,) index of each text in the tokenized corpus.
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
        """Take texts from the start of `self.shards` for evaluation, and divide them into batches.

        Texts that are too short to predict a token are left out.

        Args:
            texts: How many texts to take, including the texts that are then left out.
            batch_tokens: Approximate number of tokens in a batch.

        Returns:
            For each batch, the indices of its texts in the tokenized corpus. The texts are sorted by length,
            from the first batch to the last.
        """
        chosen = self.texts[self.texts < texts]
        chosen = chosen[np.argsort(self.shards.lengths[chosen], kind="stable")]
        ends = np.cumsum(self.shards.lengths[chosen])
        return np.split(chosen, np.flatnonzero(np.diff(ends // batch_tokens)) + 1)

    def _texts_between(self, begin: int, end: int) -> Iterator[tuple[Ints, Ints]]:
        """Find the texts that begin in a range of tokens: at token `begin` or later, and before token `end`.

        The tokens of all epochs are numbered from 0, one epoch after the other. For example, if an epoch has
        1000 tokens, token 1000 is the first token of the second epoch.

        Yields:
            For each epoch with tokens in the range, two (B,) arrays for the B texts that begin in the range:
            the number of the epoch, repeated B times, and the index of each text in the tokenized corpus.
        """
        for epoch in range(begin // self.epoch_tokens, (end - 1) // self.epoch_tokens + 1):
            texts, starts = self._epoch(epoch)
            within = np.array([begin, end]) - epoch * self.epoch_tokens
            low, high = np.searchsorted(starts, within)
            yield np.full(high - low, epoch), texts[low:high]

    def _shuffle(self, epoch: int) -> tuple[Ints, Ints]:
        """Shuffle the N texts for an epoch, and number their tokens in the new order.

        The tokens are numbered from 0 at the start of the epoch. For example, if the first three texts have
        3, 5 and 4 tokens, their first tokens have the numbers 0, 3 and 8.

        Returns:
            Two (N,) arrays: the indices of the texts in their new order, and the number of each text's first
            token.
        """
        texts = np.random.default_rng([self.seed, epoch]).permutation(self.texts)
        lengths = self.shards.lengths[texts]
        return texts, np.cumsum(lengths) - lengths
