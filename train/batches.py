"""Which texts, permuted how, make up which update: a function of (seed, update) alone."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from simllm.errors import InputError
from simllm.tokenizer import MASK_ID, SPECIAL_TOKENS
from train.permute import BOUNDARIES, Permuted, noisy_slots, permutations, permute, predicted_count
from train.shards import Shard

_FIXED = 64  # texts a batch where the batches must not depend on the configuration


class Batches:
    """Batches of texts of equal length, so that nothing is padded.

    Every epoch shuffles the texts within their length and then the batches; each text
    comes exactly once an epoch. Texts too short to predict a token of are left out.
    """

    def __init__(
        self, shard: Shard, vocab_size: int, probability: float, batch_tokens: int, seed: int
    ) -> None:
        self.shard = shard
        self.vocab_size = vocab_size
        self.probability = probability
        self.seed = seed
        lengths = shard.lengths
        self.groups = [
            (int(length), np.flatnonzero(lengths == length), max(1, batch_tokens // int(length)))
            for length in np.unique(lengths)
            if 0 < predicted_count(int(length), probability) <= length - BOUNDARIES
        ]
        if not self.groups:
            raise InputError("no text is long enough to predict a token of; the corpus is too small")
        self.tokens = sum(length * len(members) for length, members, _ in self.groups)
        self._epoch: tuple[int, list[tuple[int, np.ndarray]]] = (-1, [])

    def __len__(self) -> int:
        """Batches an epoch."""
        return sum(-(-len(members) // size) for _, members, size in self.groups)

    def __getitem__(self, index: int) -> Permuted:
        """Batch number `index` since the beginning, over all epochs."""
        epoch, place = divmod(index, len(self))
        if self._epoch[0] != epoch:
            self._epoch = (epoch, self._shuffled(epoch))
        length, members = self._epoch[1][place]
        tokens = torch.from_numpy(self.shard.texts(members, length))
        return self._permuted(tokens, seed_of(self.seed, index))

    def fixed(self, texts: int) -> Iterator[Permuted]:
        """The first `texts` texts in the order of the corpus, always permuted the same way.

        Their permutations follow from the texts alone, so that two runs over the same corpus
        and vocabulary can be compared.
        """
        for length, members, _ in self.groups:
            chosen = members[members < texts]
            for start in range(0, len(chosen), _FIXED):
                tokens = self.shard.texts(chosen[start : start + _FIXED], length)
                yield self._permuted(torch.from_numpy(tokens), seed_of(length, start))

    def _shuffled(self, epoch: int) -> list[tuple[int, np.ndarray]]:
        random = np.random.default_rng([self.seed, epoch])
        batches = []
        for length, members, size in self.groups:
            shuffled = random.permutation(members)
            batches += [(length, shuffled[i : i + size]) for i in range(0, len(shuffled), size)]
        return [batches[i] for i in random.permutation(len(batches))]

    def _permuted(self, tokens: torch.Tensor, seed: int) -> Permuted:
        generator = torch.Generator().manual_seed(seed)
        texts, length = tokens.shape
        predicted = predicted_count(length, self.probability)
        order = permutations(texts, length, predicted, generator)
        originals = tokens.gather(1, order[:, length - predicted :])
        slots = noisy_slots(originals, MASK_ID, len(SPECIAL_TOKENS), self.vocab_size, generator)
        return permute(tokens, order, slots)


def seed_of(*numbers: int) -> int:
    """One 63-bit seed from several numbers; unlike sums, no two sets of numbers share one."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> 1)
