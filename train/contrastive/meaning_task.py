"""The meaning head in contrastive training: its labelled pairs in each update, and its loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from simllm.model.config import HeadConfig
from simllm.model.network import MeaningHead
from simllm.model.saved_model import SavedModel
from simllm.model.torch_engine import TorchEngine, pad
from simllm.perturb.summaries.lexicon import Lexicon
from simllm.scoring.embedding import batch_slices
from train.contrastive.config import MeaningConfig
from train.contrastive.meaning_pairs import MeaningPair, MeaningSource, open_source
from train.corpus.decontaminate import ExcludedTexts
from train.runtime.batching import Prefetcher, combined_seed
from train.runtime.distributed import World
from train.runtime.gradients import LossPart, autocast


@dataclass(frozen=True)
class TokenizedPairs:
    """Token ids and labels of the text pairs of an update."""

    first: list[list[int]]
    second: list[list[int]]
    labels: list[float]


class MeaningTask:
    """The meaning head and its loss: the binary cross entropy over labelled text pairs.

    The head starts with the weights of `start_head`, or with random weights if that is None or does not have
    the configured shape. With `frozen`, nothing trains the encoder.
    """

    def __init__(
        self, config: MeaningConfig, start: SavedModel, start_head: MeaningHead | None,
        excluded: ExcludedTexts, lexicon: Lexicon, seed: int, precision: str, world: World,
        frozen: bool = False,
    ) -> None:  # fmt: skip
        self.config, self.encoder, self.tokenizer = config, start.encoder, start.tokenizer
        self.seed, self.precision, self.world = seed, precision, world
        # For the head's initial weights.
        torch.manual_seed(seed)
        self.head = MeaningHead(config.head, start.encoder.config)
        if start_head and fits(start_head.config, config.head):
            self.head.load_state_dict(start_head.state_dict(), strict=False)  # it may have a graded output
        self.head.to(world.device)
        # A copy for scoring is faster than the encoder itself.
        fast = frozen and precision == "bf16"
        self.frozen = frozen
        self.engine = TorchEngine(start.encoder.to(world.device), "fast" if fast else "plain")
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
        slices = batch_slices([range(sizes[i]) for i in order], 1024)
        chunks = [partial(self._loss, pairs, order[rows]) for rows in slices]
        return chunks[self.world.rank :: self.world.size]

    def _loss(self, pairs: TokenizedPairs, chosen: list[int]) -> tuple[Tensor, int]:
        """Compute the summand of the loss for the chosen pairs, and the number of tokens in their texts."""
        first, second = [pairs.first[i] for i in chosen], [pairs.second[i] for i in chosen]
        labels = torch.tensor([pairs.labels[i] for i in chosen], device=self.world.device)
        losses = F.binary_cross_entropy_with_logits(self._logits(first, second), labels, reduction="sum")
        # Divided by all pairs: the summands of all chunks and processes add up to the mean.
        return self.config.weight * losses / self.config.pairs, sum(map(len, first + second))

    def _logits(self, first: list[list[int]], second: list[list[int]]) -> Tensor:
        """Compute the (n,) logits of n text pairs."""
        tokens, mask = map(self.world.to_device, pad([*first, *second]))
        n = len(first)
        with autocast(self.world.device, self.precision):
            with torch.set_grad_enabled(not self.frozen):
                states = self.engine(tokens, mask, self.config.head.encoder_layers)
            projected = self.head.project(states)
            logits = self.head(projected[:n], mask[:n], projected[n:], mask[n:])
        return logits.squeeze(1).float()

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


def fits(start: HeadConfig, head: HeadConfig) -> bool:
    """Return whether a head can start with the weights of another one; a graded output is left out."""
    return replace(start, graded=False) == head
