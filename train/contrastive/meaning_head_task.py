"""The training task of the meaning head, which predicts whether two texts have the same meaning.

The task runs during contrastive training.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from simllm.model.meaning_head import MeaningHead
from simllm.model.saved_model import SavedModel
from simllm.model.token_batches import batch_slices, pad
from simllm.perturb.summaries.lexicon import Lexicon
from train.contrastive.config import MeaningConfig
from train.contrastive.meaning_head_pairs import MeaningPair, MeaningSource, open_source
from train.corpus.decontaminate import ExcludedTexts
from train.runtime.distributed import World
from train.runtime.gradient_exchange import LossPart
from train.runtime.mixed_precision import autocast
from train.runtime.prefetch import Prefetcher
from train.runtime.seeded_random_numbers import combined_seed


@dataclass(frozen=True)
class TokenizedPairs:
    """Token ids and labels of P text pairs.

    Attributes:
        first: The token ids of each pair's first text.
        second: The token ids of each pair's second text.
        labels: For each pair, 1 if both texts have the same meaning, else 0.
    """

    first: list[list[int]]
    second: list[list[int]]
    labels: list[float]


class MeaningTask:
    """The training task of the meaning head, which predicts whether two texts have the same meaning.

    The loss is the binary cross entropy over labelled text pairs.

    Args:
        config: The settings of the task.
        start: The initial model. Its encoder is trained together with the head, unless the settings freeze
            the encoder.
        start_head: A trained meaning head, whose weights are the initial weights of the new head. If it is
            None or does not have the configured shape, the initial weights are random.
        excluded: Texts that must not be trained on.
        lexicon: The word lists for making text pairs by rule.
        seed: Seed for the head's initial weights and for the choice of pairs.
        precision: Precision of matrix products: "fp32", "bf16" or "fp16".
        world: The processes of the run.

    Raises:
        InputError: A file of texts cannot be read, or a source of text pairs gives no usable pair.
    """

    def __init__(
        self, config: MeaningConfig, start: SavedModel, start_head: MeaningHead | None,
        excluded: ExcludedTexts, lexicon: Lexicon, seed: int, precision: str, world: World,
    ) -> None:  # fmt: skip
        self.config, self.encoder, self.tokenizer = config, start.encoder, start.tokenizer
        self.seed, self.precision, self.world = seed, precision, world
        torch.manual_seed(seed)
        self.head = MeaningHead(config.head, start.encoder.config)
        if start_head and start_head.config == config.head:
            self.head.load_state_dict(start_head.state_dict())
        self.head.to(world.device)
        self.sources: list[MeaningSource] = [open_source(s, excluded, lexicon) for s in config.sources]
        self._updates = Prefetcher(self._make)

    def losses(self, update: int) -> Sequence[LossPart]:
        """Prepare the computation of the loss of one update (optimizer step).

        The loss is the mean over the text pairs of the update, times the weight of this loss in the
        configuration. The pairs are divided into chunks, and the chunks are divided among the processes.

        Args:
            update: Number of the update, from 0.

        Returns:
            For each chunk of this process, a function without arguments. The function returns the chunk's
            term of the loss (a scalar), and the number of tokens in the chunk. The terms of all processes
            add up to the loss.
        """
        pairs = self._updates[update]
        sizes = [max(map(len, both)) for both in zip(pairs.first, pairs.second, strict=True)]
        order = sorted(range(len(sizes)), key=lambda i: sizes[i])
        # `batch_slices` limits the padded tokens of one text of each pair.
        chunks = list(batch_slices([range(sizes[i]) for i in order], 1024))
        own = chunks[self.world.rank :: self.world.size]
        return [partial(self._loss, pairs, order[rows]) for rows in own]

    def _loss(self, pairs: TokenizedPairs, chosen: list[int]) -> tuple[Tensor, int]:
        """Compute the loss on some of the text pairs of one update (optimizer step).

        The loss is the sum of the losses of these pairs, times the configured weight, divided by the number
        of all pairs of the update. The pairs of an update can therefore be divided among several calls. The
        results of these calls add up to the loss of the update.

        Args:
            pairs: All text pairs of the update.
            chosen: The indices of the pairs whose loss is computed.

        Returns:
            The loss, a scalar, and the number of tokens in the texts of the chosen pairs.
        """
        first, second = [pairs.first[i] for i in chosen], [pairs.second[i] for i in chosen]
        labels = torch.tensor([pairs.labels[i] for i in chosen], device=self.world.device)
        loss = F.binary_cross_entropy_with_logits(self._logits(first, second), labels, reduction="sum")
        return self.config.weight * loss / self.config.pairs, sum(map(len, first + second))

    def _logits(self, first: list[list[int]], second: list[list[int]]) -> Tensor:
        """Compute for n text pairs the logit of the probability that both texts have the same meaning.

        The logits are computed by the meaning head, a network that compares two texts.

        Args:
            first: The token ids of each pair's first text.
            second: The token ids of each pair's second text.

        Returns:
            (n,) logits, one for each pair.
        """
        tokens, mask = (x.to(self.world.device) for x in pad([*first, *second]))
        with autocast(self.world.device, self.precision):
            with torch.set_grad_enabled(not self.config.freeze_encoder):
                states = self.encoder(tokens, mask, last_layers=self.config.head.encoder_layers)
            projected, n = self.head.project(states), len(first)
            return self.head(projected[:n], mask[:n], projected[n:], mask[n:]).float()

    def draw_pairs(self, update: int) -> list[MeaningPair]:
        """Choose the labelled text pairs for one update (optimizer step) at random.

        Equal settings, seeds and input files give equal pairs for the same update.

        Args:
            update: Number of the update, from 0.
        """
        random = np.random.default_rng(combined_seed(self.seed, update, 2))
        shares = np.array([source.share for source in self.config.sources])
        chosen = random.choice(len(self.sources), self.config.pairs, p=shares / shares.sum())
        return [self.sources[number].draw(random) for number in chosen]

    def _make(self, update: int) -> TokenizedPairs:
        """Choose and tokenize the labelled text pairs for one update (optimizer step).

        Args:
            update: Number of the update, from 0.
        """
        pairs, limit = self.draw_pairs(update), self.encoder.config.max_length
        ids = self.tokenizer.encode([text for pair in pairs for text in (pair.first, pair.second)])
        ids = [self.tokenizer.truncate(text, limit) for text in ids]
        return TokenizedPairs(ids[::2], ids[1::2], [pair.label for pair in pairs])
