"""Which texts, permuted how, make up which update: a function of (seed, update) alone."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from simllm.errors import InputError
from train.pretrain.permutation import (
    Ints,
    Permuted,
    noisy_slots,
    orders,
    permute,
    predicted_counts,
    predicted_places,
    ragged,
    uniform,
)
from train.tokens.shards import Shards


class Batches:
    """Updates of `update_tokens` tokens each, dealt out to processes and cut into batches.

    Imagine the texts of every epoch, shuffled anew, as one endless row of tokens: an update
    is the texts that begin in its stretch of `update_tokens`, a batch those that begin in its
    part of the stretch. So each text comes exactly once an epoch, however many processes
    share an update, and any update can be made at once. How a text is permuted depends on
    the text, the epoch and the seed. Texts too short to predict a token of are left out.
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
        self.tokens = int(shards.lengths[self.texts].sum())  # of an epoch
        self._epoch = lru_cache(maxsize=2)(self._shuffled)

    def shape(self) -> Ints:
        """(N, 2) n and m of all texts of an epoch."""
        return np.stack([self.shards.lengths[self.texts], self.predicted[self.texts]], 1)

    def update(self, number: int, batches: int) -> list[tuple[Ints, Ints]]:
        """The texts of an update in `batches` parts; each is (epochs, texts), one of each a text."""
        first, parts = number * self.update_tokens, []
        edges = [first + part * self.update_tokens // batches for part in range(batches + 1)]
        for begin, end in itertools.pairwise(edges):
            chosen = list(self._between(begin, end))
            parts.append((np.concatenate([e for e, _ in chosen]), np.concatenate([t for _, t in chosen])))
        return parts

    def count(self, parts: list[tuple[Ints, Ints]]) -> int:
        """Predicted tokens of all parts of an update."""
        return sum(int(self.predicted[texts].sum()) for _, texts in parts)

    def permuted(self, epochs: Ints, texts: Ints) -> Permuted:
        """A batch of these texts, as permuted in these epochs, sorted by length."""
        by_length = np.argsort(self.shards.lengths[texts], kind="stable")
        epochs, texts = epochs[by_length], texts[by_length]
        lengths, predicted = self.shards.lengths[texts], self.predicted[texts]
        text, place, _ = ragged(lengths)
        keys = self.first_token[texts][text] + place
        tokens, keys = self.shards.read(keys), keys + epochs[text] * self.shards.tokens
        order = orders(tokens, lengths, uniform(seed_of(self.seed, 0), keys))
        hidden = predicted_places(lengths, predicted, order)
        draw, token = (uniform(seed_of(self.seed, use), keys[hidden]) for use in (1, 2))
        slots = noisy_slots(tokens[hidden], self.vocab_size, draw, token)
        batch = permute(tokens, lengths, predicted, order, slots)
        return batch.masked() if self.masked else batch

    def fixed(self, texts: int, batch_tokens: int) -> list[Ints]:
        """The first `texts` texts in the order of the corpus, in parts of about `batch_tokens`."""
        chosen = self.texts[self.texts < texts]
        chosen = chosen[np.argsort(self.shards.lengths[chosen], kind="stable")]
        ends = np.cumsum(self.shards.lengths[chosen])
        return np.split(chosen, np.flatnonzero(np.diff(ends // batch_tokens)) + 1)

    def _between(self, begin: int, end: int) -> Iterator[tuple[Ints, Ints]]:
        """The texts that begin between two places of the endless row."""
        for epoch in range(begin // self.tokens, (end - 1) // self.tokens + 1):
            texts, starts = self._epoch(epoch)
            within = np.array([begin, end]) - epoch * self.tokens
            low, high = np.searchsorted(starts, within)
            yield np.full(high - low, epoch), texts[low:high]

    def _shuffled(self, epoch: int) -> tuple[Ints, Ints]:
        """The texts in an epoch's order, and where in its row of tokens each begins."""
        texts = np.random.default_rng([self.seed, epoch]).permutation(self.texts)
        lengths = self.shards.lengths[texts]
        return texts, np.cumsum(lengths) - lengths


def seed_of(*numbers: int) -> int:
    """One 63-bit seed from several numbers; unlike sums, no two sets of as many share one."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> 1)
