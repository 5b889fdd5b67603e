"""The meaning head in contrastive training: its labelled pairs in each update, and its loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from simllm.model.engines import batch_slices, pad
from simllm.model.network import MeaningHead
from simllm.model.saved_model import SavedModel
from simllm.perturb.summaries.lexicon import Lexicon
from train.contrastive.config import MeaningConfig
from train.contrastive.meaning_pairs import MeaningPair, MeaningSource, open_source
from train.corpus.decontaminate import ExcludedTexts
from train.runtime.batching import Prefetcher, combined_seed
from train.runtime.distributed import World
from train.runtime.gradients import LossPart
from train.runtime.precision import autocast


@dataclass(frozen=True)
class TokenizedPairs:
    """Token ids and labels of the text pairs of an update."""

    first: list[list[int]]
    second: list[list[int]]
    labels: list[float]


class MeaningTask:
    """The meaning head and its loss, the binary cross entropy over labelled text pairs.

    The head starts with the weights of `start_head`, or with random weights if that is None or does not have
    the configured shape.
    """

    def __init__(
        self, config: MeaningConfig, start: SavedModel, start_head: MeaningHead | None,
        excluded: ExcludedTexts, lexicon: Lexicon, seed: int, precision: str, world: World,
    ) -> None:  # fmt: skip
        self.config, self.encoder, self.tokenizer = config, start.encoder, start.tokenizer
        self.seed, self.precision, self.world = seed, precision, world
        # For the head's initial weights.
        torch.manual_seed(seed)
        self.head = MeaningHead(config.head, start.encoder.config)
        if start_head and start_head.config == config.head:
            self.head.load_state_dict(start_head.state_dict())
        self.head.to(world.device)
        self.sources: list[MeaningSource] = [open_source(s, excluded, lexicon) for s in config.sources]
        self._updates = Prefetcher(self._make)

    def losses(self, update: int) -> Sequence[LossPart]:
        """Return the parts of the loss of one update that this process computes, one for each of its chunks.

        The loss is the mean over all pairs of the update, times its weight.
        """
        pairs = self._updates[update]
        sizes = [max(map(len, both)) for both in zip(pairs.first, pairs.second, strict=True)]
        # Texts of similar length share a chunk, so that little is padded.
        order = sorted(range(len(sizes)), key=lambda i: sizes[i])
        # `batch_slices` limits the padded tokens of one text of each pair.
        chunks = list(batch_slices([range(sizes[i]) for i in order], 1024))
        own = chunks[self.world.rank :: self.world.size]
        return [partial(self._loss, pairs, order[rows]) for rows in own]

    def _loss(self, pairs: TokenizedPairs, chosen: list[int]) -> tuple[Tensor, int]:
        """Compute the summand of the loss for the chosen pairs, and the number of tokens in their texts."""
        first, second = [pairs.first[i] for i in chosen], [pairs.second[i] for i in chosen]
        labels = torch.tensor([pairs.labels[i] for i in chosen], device=self.world.device)
        loss = F.binary_cross_entropy_with_logits(self._logits(first, second), labels, reduction="sum")
        # Divided by all pairs of the update: the summands of all chunks and processes add up to the mean.
        return self.config.weight * loss / self.config.pairs, sum(map(len, first + second))

    def _logits(self, first: list[list[int]], second: list[list[int]]) -> Tensor:
        """Compute the (n,) logits of the probability that both texts of n pairs have the same meaning."""
        tokens, mask = (x.to(self.world.device) for x in pad([*first, *second]))
        with autocast(self.world.device, self.precision):
            with torch.set_grad_enabled(not self.config.freeze_encoder):
                states = self.encoder(tokens, mask, last_layers=self.config.head.encoder_layers)
            projected, n = self.head.project(states), len(first)
            return self.head(projected[:n], mask[:n], projected[n:], mask[n:]).float()

    def draw_pairs(self, update: int) -> list[MeaningPair]:
        """Draw the labelled text pairs of one update."""
        # The 2 keeps the draw apart from those of the positive pairs and the rated pairs.
        random = np.random.default_rng(combined_seed(self.seed, update, 2))
        shares = np.array([source.share for source in self.config.sources])
        chosen = random.choice(len(self.sources), self.config.pairs, p=shares / shares.sum())
        return [self.sources[number].draw(random) for number in chosen]

    def _make(self, update: int) -> TokenizedPairs:
        pairs, limit = self.draw_pairs(update), self.encoder.config.max_length
        ids = self.tokenizer.encode([text for pair in pairs for text in (pair.first, pair.second)])
        ids = [self.tokenizer.truncate(text, limit) for text in ids]
        return TokenizedPairs(ids[::2], ids[1::2], [pair.label for pair in pairs])
