"""The task of distillation: its losses, its batches, and the student with its evaluation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from simllm.metric import SimLLM
from simllm.model.network import get_pooling
from simllm.model.tokenizer import Tokenizer
from train.distill.config import NEAREST, DistillConfig, ImitationConfig
from train.distill.targets import Embed, Targets, ngram_cosines, rotate_towards_encoder
from train.runtime.batching import Prefetcher, combined_seed
from train.runtime.dev_criterion import DevCriterion
from train.runtime.distributed import World
from train.runtime.gradients import LossPart, autocast, embedding_loss_parts


def cosine_loss(embeddings: Tensor, targets: Tensor) -> Tensor:
    """Compute the mean of 1 - cosine between (N, D) embeddings and their targets."""
    return 1 - F.cosine_similarity(embeddings, targets, dim=1).mean()


def squared_loss(embeddings: Tensor, targets: Tensor) -> Tensor:
    """Compute the mean squared distance between (N, D) embeddings, scaled to length 1, and unit targets."""
    return (F.normalize(embeddings, dim=1) - targets).square().sum(1).mean()


def neighbour_distillation_loss(embeddings: Tensor, cosines: Tensor, temperature: float) -> Tensor:
    """Compute how much the similarities among N texts differ between a student and a teacher.

    For each text, a softmax over the cosines with the other texts, divided by the temperature, makes a
    distribution. The loss is the mean of KL(teacher || student). `embeddings` are the student's (N, D), of
    any length; `cosines` are the teacher's (N, N).
    """
    unit = F.normalize(embeddings, dim=1)
    # A text is not its own neighbour. -1e4 instead of -inf keeps the KL divergence free of 0 * inf.
    own = torch.eye(len(unit), dtype=torch.bool, device=unit.device)
    student = (unit @ unit.T / temperature).masked_fill(own, -1e4).log_softmax(dim=1)
    teacher = (cosines / temperature).masked_fill(own, -1e4).log_softmax(dim=1)
    return F.kl_div(student, teacher, reduction="batchmean", log_target=True)


_SIMILAR = 0.35  # cosine to learn above which a pair is similar; most random pairs are below


def pair_shares(cosines: Tensor) -> Tensor:
    """Return how much each pair of N texts counts in a loss over pairs: (N, N).

    Similar pairs, which are few, have 2/3 in all, the others 1/3. `cosines` are the teacher's (N, N).
    """
    other = ~torch.eye(len(cosines), dtype=torch.bool, device=cosines.device)
    similar, different = other & (cosines > _SIMILAR), other & (cosines <= _SIMILAR)
    return (2 * similar / similar.sum().clamp(min=1) + different / different.sum().clamp(min=1)) / 3


def pair_loss(embeddings: Tensor, cosines: Tensor) -> Tensor:
    """Compute the mean squared difference between the cosines of a student and a teacher, over the pairs of N
    texts by `pair_shares`. `embeddings` are the student's (N, D), of any length; `cosines` the teacher's
    (N, N).
    """
    unit = F.normalize(embeddings, dim=1)
    return (pair_shares(cosines) * (unit @ unit.T - cosines).square()).sum()


def correlation_loss(embeddings: Tensor, cosines: Tensor) -> Tensor:
    """Compute 1 - Pearson's correlation between the cosines of a student and a teacher, with the arguments
    and shares of `pair_loss`. The student keeps its own scale of cosines.
    """
    unit, shares = F.normalize(embeddings, dim=1), pair_shares(cosines)
    shares = shares / shares.sum().clamp(min=1e-9)
    ours, theirs = (values - (shares * values).sum() for values in (unit @ unit.T, cosines))
    norms = (shares * ours.square()).sum() * (shares * theirs.square()).sum()
    return 1 - (shares * ours * theirs).sum() / norms.clamp(min=1e-12).sqrt()


def weighted_loss(
    config: ImitationConfig, embeddings: Tensor, targets: Tensor, cosines: Tensor, temperature: float
) -> Tensor:
    """Compute the weighted sum of the five losses for N texts; a loss with weight 0 is not computed."""
    loss = embeddings.new_zeros(())
    if config.cosine_weight:
        loss = loss + config.cosine_weight * cosine_loss(embeddings, targets)
    if config.squared_weight:
        loss = loss + config.squared_weight * squared_loss(embeddings, targets)
    if config.similarity_weight:
        loss = loss + config.similarity_weight * neighbour_distillation_loss(embeddings, cosines, temperature)
    if config.pair_weight:
        loss = loss + config.pair_weight * pair_loss(embeddings, cosines)
    if config.correlation_weight:
        loss = loss + config.correlation_weight * correlation_loss(embeddings, cosines)
    return loss


@dataclass(frozen=True)
class ImitationBatch:
    """The N tokenized texts of one update, and what the encoder should learn.

    Attributes:
        targets: (N, D) embeddings.
        cosines: (N, N) cosines between texts, averaged over all teachers and mixed with those of n-grams.
    """

    ids: list[list[int]]
    targets: Tensor
    cosines: Tensor


class Imitation:
    """Batches and loss for training an encoder on the embeddings of its teachers.

    Args:
        config: The weights of the losses, and the number of groups per update.
        targets: The targets, which are rotated towards the encoder's present embeddings.
        tokenizer: The encoder's tokenizer.
        embed: Computes (B, D) embeddings from (B, L) token ids and mask, with the encoder in training.
        max_length: Tokens of a text; longer texts are cut.
        chunk_tokens: Tokens that are embedded at once, padding included.
        temperature: Of the softmax in `neighbour_distillation_loss`.
        cache_gradients: Whether to save memory by embedding each chunk twice: without and with gradients.
        seed: Seed for the order of the groups.
        world: The processes of the run.
    """

    def __init__(
        self,
        config: ImitationConfig,
        targets: Targets,
        tokenizer: Tokenizer,
        embed: Embed,
        *,
        max_length: int,
        chunk_tokens: int,
        temperature: float,
        cache_gradients: bool,
        seed: int,
        world: World,
    ) -> None:
        self.config, self.targets, self.embed, self.world = config, targets, embed, world
        self.chunk_tokens, self.temperature, self.seed = chunk_tokens, temperature, seed
        self.cache_gradients = cache_gradients
        groups = targets.groups
        # Group g has the texts starts[g] to starts[g + 1] of the flat list.
        self.starts = np.cumsum([0, *map(len, groups)])
        self.texts = [text for group in groups for text in group]
        self.ids = [tokenizer.truncate(ids, max_length) for ids in tokenizer.encode(self.texts)]
        rotate_towards_encoder(targets, self.ids, embed, world)
        self._updates = Prefetcher(self._make)

    def losses(self, update: int) -> list[LossPart]:
        """Return the parts of the loss of one update that this process computes, one for each chunk."""
        batch = self._updates[update]
        return embedding_loss_parts(
            batch.ids,
            self.embed,
            partial(self._loss, batch=batch),
            width=batch.targets.shape[1],
            chunk_tokens=self.chunk_tokens,
            seed=(self.seed, update),
            cache_gradients=self.cache_gradients,
            world=self.world,
        )

    def choose_groups(self, update: int) -> np.ndarray:
        """Return the (G,) groups of one update; an epoch uses all groups once, in a new random order."""
        count, size = len(self.starts) - 1, self.config.groups
        places = np.arange(update * size, (update + 1) * size)
        result = np.empty(size, int)
        # An update may reach over the end of an epoch into the next one.
        for epoch in np.unique(places // count):
            order = np.random.default_rng(combined_seed(self.seed, int(epoch))).permutation(count)
            inside = places // count == epoch
            result[inside] = order[places[inside] % count]
        return result

    def _make(self, update: int) -> ImitationBatch:
        groups, share = self.choose_groups(update), self.config.ngram_share
        numbers = np.concatenate([np.arange(self.starts[g], self.starts[g + 1]) for g in groups])
        if self.config.neighbours:
            numbers = np.unique([*numbers, *self._draw_neighbours(self.starts[groups], update)])
        whole = self.targets.teacher_embeddings(numbers)
        cosines = whole @ whole.T
        if share:
            cosines = (1 - share) * cosines + share * ngram_cosines([self.texts[i] for i in numbers])
        return ImitationBatch([self.ids[i] for i in numbers], self.targets.reduce(whole), cosines)

    def _draw_neighbours(self, texts: np.ndarray, update: int) -> Iterator[int]:
        """Draw neighbours of texts; of two ranks, the nearer one is as much more frequent as it is nearer."""
        random = np.random.default_rng(combined_seed(self.seed, update, 3))
        for near in self.targets.find_neighbours(texts, NEAREST):
            shares = 1 / np.arange(1, len(near) + 1)
            count = min(self.config.neighbours, len(near))
            if count:
                yield from random.choice(near, count, replace=False, p=shares / shares.sum())

    def _loss(self, embeddings: Tensor, batch: ImitationBatch) -> Tensor:
        """Compute the loss of an update from the (N, D) embeddings of its texts."""
        targets, cosines = map(self.world.to_device, (batch.targets, batch.cosines))
        return weighted_loss(self.config, embeddings, targets, cosines, self.temperature)


class EmbeddingTask:
    """A task for the training loop whose model is an encoder that embeds texts: the encoder of `metric`."""

    dev_criterion: DevCriterion

    def __init__(self, precision: str, metric: SimLLM, world: World) -> None:
        self.precision, self.metric, self.world = precision, metric, world
        self.encoder = metric.model.encoder.to(world.device)
        self.pool = get_pooling(metric.pooling)

    @property
    def flops_per_token(self) -> float:
        """Estimated floating-point operations per trained token."""
        # Each weight needs 2 operations in the forward pass and 4 in the backward pass.
        return 6.0 * sum(p.numel() for p in self.encoder.layers.parameters())

    def format_loss(self, loss: float) -> str:
        """Format the loss of one update for the progress bar."""
        return f"loss {loss:.3f}"

    def evaluate(self) -> tuple[float, dict[str, float]]:
        """Return the dev criterion (lower is better) and the figures for the log, by name."""
        return self.dev_criterion(self.metric)

    def embed(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """Compute (B, D) float32 embeddings from (B, L) token ids and their (B, L) mask, 0 for padding."""
        with autocast(self.world.device, self.precision):
            return self.pool(self.encoder(tokens, mask), mask).float()


class DistillationTask(EmbeddingTask):
    """The task of distillation: the student learns the targets."""

    def __init__(self, config: DistillConfig, metric: SimLLM, targets: Targets, world: World) -> None:
        super().__init__(config.precision, metric, world)
        self.model = self.encoder
        self.imitation = Imitation(
            config,
            targets,
            metric.model.tokenizer,
            self.embed,
            max_length=config.model.max_length,
            chunk_tokens=config.chunk_tokens,
            temperature=config.temperature,
            cache_gradients=False,
            seed=config.seed,
            world=world,
        )
        self.dev_criterion = DevCriterion(config.dev, None, config.seed)

    def losses(self, update: int) -> Sequence[LossPart]:
        """Return the parts of the loss of one update that this process computes."""
        return self.imitation.losses(update)

    def describe_texts(self, update: int) -> str:
        """Describe the groups of one update for the error message of a diverged run."""
        groups = self.imitation.choose_groups(update)
        first = self.imitation.texts[self.imitation.starts[groups[0]]]
        return f"{len(groups)} groups of texts ({first!r}, …)"
