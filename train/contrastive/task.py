"""The task of contrastive training: the model, its losses and its evaluation on dev data."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise

import torch
from torch import Tensor, nn

from simllm.errors import InputError
from simllm.metric import SimLLM
from simllm.model import saved_model
from simllm.model.saved_model import SavedModel
from simllm.model.torch_engine import TorchEngine
from simllm.perturb.summaries import lexicon
from train.contrastive.auxiliary_lm import AuxiliaryLanguageModel
from train.contrastive.batches import ContrastiveBatch, ContrastiveBatches, PositivePair
from train.contrastive.config import ContrastiveConfig
from train.contrastive.losses import Anchor, anchor_loss, cosent, info_nce, triplet_loss
from train.contrastive.meaning_pairs import MeaningPair, make_triples, read_items
from train.contrastive.meaning_task import MeaningTask
from train.corpus.decontaminate import ExcludedTexts
from train.distill.targets import Targets
from train.distill.task import EmbeddingTask, Imitation, neighbour_distillation_loss
from train.runtime.dev_criterion import DevCriterion
from train.runtime.distributed import World
from train.runtime.gradients import LossPart, embedding_loss_parts


class ContrastiveTask(EmbeddingTask):
    """The task that the training loop runs: model, losses, evaluation on dev data.

    The main loss is InfoNCE. The configuration can replace it by the triplet loss, and add auxiliary losses.
    `targets` are the embeddings to imitate; None without imitation.
    """

    def __init__(self, config: ContrastiveConfig, world: World, targets: Targets | None = None) -> None:
        super().__init__(config.precision, SimLLM(config.model, mode="plain", device="cpu"), world)
        self.config, start = config, self.metric.model
        self.batches = ContrastiveBatches(config, start)
        self.auxiliary_lm: AuxiliaryLanguageModel | None = None
        if lm_config := config.language_model:
            excluded = self.batches.excluded
            self.auxiliary_lm = AuxiliaryLanguageModel(lm_config, config, start, excluded, world)
        self.model: nn.Module = self.auxiliary_lm.model if self.auxiliary_lm else self.encoder
        self.meaning: MeaningTask | None = None
        self.head_start = load_head_start(config, start)
        if config.meaning:
            self.meaning = MeaningTask(
                config.meaning,
                start,
                self.head_start.head,
                self.batches.excluded,
                self.batches.lexicon,
                config.seed,
                config.precision,
                world,
                frozen=config.head_only,
            )
            if config.head_only:
                self.encoder.requires_grad_(False)
            encoders = {} if config.head_only else {"encoder": self.model}
            self.model = nn.ModuleDict({**encoders, "head": self.meaning.head})
            self.metric.meaning = saved_model.MeaningInfo(config.meaning.head)
        # Without `meaning`, the new model has no meaning head, even if the initial model has one.
        assert isinstance(self.metric.engine, TorchEngine)
        self.metric.engine.use_head(self.meaning.head if self.meaning else None)
        self.metric.head = self.metric.engine.head
        self.anchor: Anchor | None = None
        if config.anchor_weight:
            self.anchor = Anchor(self.encoder, self.pool, config.precision, world.device)
        self.imitation: Imitation | None = None
        if config.imitation:
            assert targets
            self.imitation = Imitation(
                config.imitation,
                targets,
                start.tokenizer,
                self.embed,
                max_length=start.encoder.config.max_length,
                chunk_tokens=config.chunk_tokens,
                temperature=config.temperature,
                cache_gradients=config.cache_gradients,
                seed=config.seed,
                world=world,
            )
        items = None
        if config.dev_items:
            # Items of the dev split are not trained on: their held-out words may stay.
            nothing_held_out = lexicon.load().held_out_words
            items = make_triples(read_items(config.dev_items, "dev", ExcludedTexts([]), nothing_held_out))
        self.dev_criterion = DevCriterion(config.dev, config.dev_comments, config.seed, items)

    def describe_texts(self, update: int) -> str:
        """Describe the texts of one update for the error message of a diverged run: `64 pairs ('a' and 'b',
        …)`.
        """
        pairs: Sequence[MeaningPair | PositivePair]
        if self.config.head_only and self.meaning:
            pairs = self.meaning.draw_pairs(update)
        else:
            pairs = self.batches.pairs(update)
        return f"{len(pairs)} pairs ({pairs[0].first!r} and {pairs[0].second!r}, …)"

    def losses(self, update: int) -> Sequence[LossPart]:
        """Return the parts of the loss of one update that this process computes."""
        if self.config.head_only and self.meaning:
            return self.meaning.losses(update)
        config, batch = self.config, self.batches[update]
        parts = embedding_loss_parts(
            batch.ids,
            self._embed_with_anchor,
            partial(self._loss, batch=batch),
            width=self.encoder.config.hidden_size * (2 if self.anchor else 1),
            chunk_tokens=config.chunk_tokens,
            seed=(config.seed, update),
            cache_gradients=config.cache_gradients,
            world=self.world,
        )
        for auxiliary in (self.auxiliary_lm, self.meaning, self.imitation):
            if auxiliary:
                parts += auxiliary.losses(update)
        return parts

    def _embed_with_anchor(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """Compute (B, D) float32 embeddings; with an anchor (B, 2 D), each row followed by the anchor's
        embedding.
        """
        embeddings = self.embed(tokens, mask)
        if not self.anchor:
            return embeddings
        return torch.cat([embeddings, self.anchor.embed(tokens, mask)], dim=1)

    def _loss(self, embeddings: Tensor, batch: ContrastiveBatch) -> Tensor:
        """Compute the weighted sum of the losses that need only the (N, D or 2 D) embeddings of a batch."""
        config, to_device = self.config, self.world.to_device
        if self.anchor:
            embeddings, anchored = embeddings.chunk(2, dim=1)
        first, second, negatives, _, *rated_texts = (embeddings[a:b] for a, b in pairwise(batch.ends))
        loss = embeddings.new_zeros(())
        if config.info_nce_weight:
            loss = loss + config.info_nce_weight * info_nce(
                first,
                second,
                to_device(batch.same_meaning),
                config.temperature,
                negatives,
                config.hard_negative_weight,
                to_device(batch.false_hard_negatives),
            )
        if config.triplet_weight:
            pairs = batch.negative_pairs
            # Unlike InfoNCE, the triplet loss cannot mask a hard negative: it leaves the row out.
            kept = ~batch.false_hard_negatives[pairs, torch.arange(len(pairs))]
            loss = loss + config.triplet_weight * triplet_loss(
                first, second, negatives[to_device(kept)], to_device(pairs[kept]), config.triplet_temperature
            )
        if batch.cosines is not None and config.overlap:
            compared = torch.cat([first, embeddings[batch.ends[3] :]])
            loss = loss + config.overlap.weight * neighbour_distillation_loss(
                compared, to_device(batch.cosines), config.temperature
            )
        if self.anchor:
            # Sections 0 and 1: the texts of the positive pairs.
            end = batch.ends[2]
            loss = loss + config.anchor_weight * anchor_loss(
                embeddings[:end], anchored[:end], config.temperature
            )
        for source, rated, a, b in zip(
            config.rated, batch.rated, rated_texts[::2], rated_texts[1::2], strict=True
        ):
            values, sets = (to_device(torch.from_numpy(x)) for x in (rated.ratings, rated.sets))
            loss = loss + source.weight * cosent(a, b, values, sets, config.temperature)
        return loss


def load_head_start(config: ContrastiveConfig, start: SavedModel) -> SavedModel:
    """Load the model whose meaning head provides the initial weights: `meaning.start`, or else the initial
    model.
    """
    if not (config.meaning and config.meaning.start):
        return start
    named = saved_model.load(config.meaning.start)
    if not named.head:
        raise InputError(f"meaning.start: {config.meaning.start}: a model without a meaning head")
    return named
