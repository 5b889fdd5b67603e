"""The meaning head in contrastive training: its labelled pairs in each update, and its loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from simllm.model.config import HeadConfig
from simllm.model.network import MeaningHead, get_pooling, of_last_layer
from simllm.model.saved_model import SavedModel
from simllm.model.torch_engine import TorchEngine, pad
from simllm.perturb.summaries.lexicon import Lexicon
from simllm.scoring import embedding
from simllm.scoring.embedding import batch_slices
from train.contrastive.config import MeaningConfig
from train.contrastive.meaning_pairs import GradedPairs, MeaningPair, MeaningSource, open_source
from train.corpus.decontaminate import ExcludedTexts
from train.runtime.batching import Prefetcher, combined_seed
from train.runtime.distributed import World
from train.runtime.gradients import LossPart, autocast


@dataclass(frozen=True)
class TokenizedPairs:
    """Token ids of the text pairs of an update, first those with labels, with the weights of their losses."""

    first: list[list[int]]
    second: list[list[int]]
    labels: list[float]
    weights: list[float]


class MeaningTask:
    """The meaning head and its loss: the binary cross entropy over labelled and graded text pairs.

    The head starts with the weights of `start_head`, or with random weights if that is None or does not have
    the configured shape. A start head without a graded output gets one. With `frozen`, nothing trains the
    encoder.
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
            copy_head(start_head, self.head)
        self.head.to(world.device)
        # A copy for scoring is faster than the encoder itself.
        fast = frozen and precision == "bf16"
        self.frozen = frozen or config.freeze_encoder
        self.pool = get_pooling(start.info.pooling)
        self.engine = TorchEngine(start.encoder.to(world.device), "fast" if fast else "plain")
        self.sources: list[MeaningSource] = [open_source(s, excluded, lexicon) for s in config.sources]
        self.graded = [GradedPairs(source, excluded) for source in config.graded]
        self._updates = Prefetcher(self._make)

    def losses(self, update: int) -> Sequence[LossPart]:
        """Return the parts of the loss of one update that this process computes, one for each of its chunks.

        The loss is the mean over all labelled pairs of the update, plus the mean over all graded pairs, both
        times their weights.
        """
        pairs = self._updates[update]
        sizes = [max(map(len, both)) for both in zip(pairs.first, pairs.second, strict=True)]
        # Texts of similar length share a chunk, so that little is padded.
        order = sorted(range(len(sizes)), key=lambda i: sizes[i])
        chunks = []
        for graded in (False, True):
            kind = [i for i in order if (i >= self.config.pairs) == graded]
            # `batch_slices` limits the padded tokens of one text of each pair.
            slices = batch_slices([range(sizes[i]) for i in kind], 1024)
            chunks += [partial(self._loss, pairs, kind[rows], graded) for rows in slices]
        return chunks[self.world.rank :: self.world.size]

    def _loss(self, pairs: TokenizedPairs, chosen: list[int], graded: bool) -> tuple[Tensor, int]:
        """Compute the summand of the loss for the chosen pairs, and the number of tokens in their texts."""
        first, second = [pairs.first[i] for i in chosen], [pairs.second[i] for i in chosen]
        labels, weights = (
            torch.tensor([values[i] for i in chosen], device=self.world.device)
            for values in (pairs.labels, pairs.weights)
        )
        logits = self._logits(first, second, graded)
        losses = F.binary_cross_entropy_with_logits(logits, labels, reduction="none")
        return (weights * losses).sum(), sum(map(len, first + second))

    def _logits(self, first: list[list[int]], second: list[list[int]], graded: bool) -> Tensor:
        """Compute the (n,) logits of n text pairs, by one of the head's two outputs."""
        tokens, mask = (x.to(self.world.device) for x in pad([*first, *second]))
        n = len(first)
        with autocast(self.world.device, self.precision):
            with torch.set_grad_enabled(not self.frozen):
                states = self.engine(tokens, mask, self.config.head.encoder_layers)
            # Grades of general sentences train the layers of the graded output alone.
            with torch.set_grad_enabled(not graded):
                projected = self.head.project(states)
                both = self.head.features(projected[:n], mask[:n], projected[n:], mask[n:])
            if not graded:
                return self.head.same(both).squeeze(1).float()
            embeddings = self.pool(of_last_layer(states, self.encoder.config.hidden_size), mask).float()
            cosines = F.cosine_similarity(embeddings[:n], embeddings[n:])
            return self.head.grade(both, cosines).squeeze(1)

    def draw_pairs(self, update: int) -> list[MeaningPair]:
        """Draw the labelled text pairs of one update, and then its graded pairs."""
        # The 2 keeps the draw apart from those of the positive pairs and the rated pairs.
        random = np.random.default_rng(combined_seed(self.seed, update, 2))
        pairs = []
        for configs, sources, count in (
            (self.config.sources, self.sources, self.config.pairs),
            (self.config.graded, self.graded, self.config.graded_pairs),
        ):
            if count:
                shares = np.array([each.share for each in configs])
                chosen = random.choice(len(configs), count, p=shares / shares.sum())
                pairs += [sources[number].draw(random) for number in chosen]
        return pairs

    def _make(self, update: int) -> TokenizedPairs:
        config, pairs, limit = self.config, self.draw_pairs(update), self.encoder.config.max_length
        ids = self.tokenizer.encode([text for pair in pairs for text in (pair.first, pair.second)])
        ids = [self.tokenizer.truncate(text, limit) for text in ids]
        labelled, graded = config.pairs, config.graded_pairs
        # Divided by all pairs of a kind: the summands of all chunks and processes add up to the mean.
        weights = [config.weight / labelled] * labelled + [config.graded_weight / max(graded, 1)] * graded
        return TokenizedPairs(ids[::2], ids[1::2], [pair.label for pair in pairs], weights)


def fits(start: HeadConfig, head: HeadConfig) -> bool:
    """Return whether a head can start with the weights of another one, with or without a graded output."""
    return replace(start, graded=head.graded) == head


def copy_head(source: MeaningHead, target: MeaningHead) -> None:
    """Copy the weights of a head; a graded output that the source lacks keeps its initial weights."""
    copied, weights = source.state_dict(), target.state_dict()
    target.load_state_dict({name: copied.get(name, initial) for name, initial in weights.items()})


SAMPLE_STEP = 20  # every 20th comment is embedded, which is enough for the mean embedding


def centre_embeddings(model: SavedModel, texts: Sequence[str]) -> None:
    """Shift the embeddings of a model, in place, so that the mean embedding of the given texts is 0."""
    tokenized = embedding.tokenize(model.tokenizer, texts, model.encoder.config.max_length, "truncate")
    embeddings = embedding.embed(TorchEngine(model.encoder), tokenized, "mean")
    last: Any = model.encoder.layers[-1]
    shift = torch.from_numpy(embeddings.mean(axis=0))
    # Because mean pooling is linear, it is enough to change the bias of the last layer norm.
    last.norm.bias.data -= shift.to(last.norm.bias.device)
    if model.head:
        # The meaning head takes the shifted vectors as inputs. Its own bias undoes the shift, so that its
        # results stay the same.
        weight = of_last_layer(model.head.project.weight.data, len(shift))
        model.head.project.bias.data += weight @ shift
