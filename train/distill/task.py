"""The distillation task, which gives the training loop the student, its losses and its evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from simllm.metric import SimLLM
from simllm.model import pooling
from simllm.scoring.encode import pad
from train.contrastive.dev_criterion import DevCriterion
from train.contrastive.lexical_teacher import neighbour_distillation_loss
from train.distill.config import DistillConfig
from train.distill.losses import cosine_loss, squared_loss
from train.distill.pca_targets import Targets
from train.distill.texts import Group
from train.pretrain.batches import combined_seed
from train.runtime.distributed import World
from train.runtime.embedding_loss import embedding_loss_parts
from train.runtime.gradient_exchange import LossPart
from train.runtime.prefetch import Prefetcher

_ROTATION_TEXTS = 8192  # texts for computing the rotation of the targets


@dataclass(frozen=True)
class DistillBatch:
    """The N tokenized texts of one update (optimizer step), with the targets for their embeddings.

    Attributes:
        ids: The token ids of each text.
        targets: (N, D) embeddings that the student should learn.
        cosines: (N, N) similarity of every two texts: the cosine between a teacher's embeddings of the two
            texts, averaged over all teachers.
    """

    ids: list[list[int]]
    targets: Tensor
    cosines: Tensor


class DistillationTask:
    """The distillation task, which gives the training loop the student, its losses and its evaluation.

    Args:
        config: The configuration of the run.
        groups: The training texts. Texts in one group, such as a text and its rewording, are used in
            the same update (optimizer step).
        metric: A metric whose encoder is the untrained student. Training changes this encoder.
        targets: The embeddings that the student should learn. The constructor rotates them towards the
            untrained student's embeddings, so that they are easier to learn.
        world: The processes of the run.
    """

    def __init__(
        self,
        config: DistillConfig,
        groups: Sequence[Group],
        metric: SimLLM,
        targets: Targets,
        world: World,
    ) -> None:
        self.config, self.world, self.metric, self.targets = config, world, metric, targets
        self.model = metric.model.encoder.to(world.device)
        self.starts = np.cumsum([0, *map(len, groups)])
        limit = config.model.max_length
        tokenizer = metric.model.tokenizer
        texts = tokenizer.encode([text for group in groups for text in group])
        self.ids = [tokenizer.truncate(ids, limit) for ids in texts]
        self.first_texts = [group[0] for group in groups]
        with torch.no_grad():
            some = np.arange(min(_ROTATION_TEXTS, len(self.ids)))
            parts = [pad(self.ids[i : i + 64]) for i in range(0, len(some), 64)]
            embeddings = torch.cat([self._embed(*(x.to(world.device) for x in part)) for part in parts])
            targets.rotate_towards(embeddings.cpu(), some)
        self.dev_criterion = DevCriterion(config.dev, None, config.seed)
        self._updates = Prefetcher(self._make)

    @property
    def flops_per_token(self) -> float:
        """Approximate floating-point operations per training token: 6 times the number of layer weights."""
        return 6.0 * sum(p.numel() for p in self.model.layers.parameters())

    def format_loss(self, loss: float) -> str:
        """Format the loss of one update (optimizer step) for the progress bar."""
        return f"loss {loss:.3f}"

    def describe_texts(self, update: int) -> str:
        """Describe the texts of one update (optimizer step): the number of groups, and the first text."""
        groups = self._choose_groups(update)
        return f"{len(groups)} groups of texts ({self.first_texts[groups[0]]!r}, …)"

    def losses(self, update: int) -> Sequence[LossPart]:
        """Prepare the computation of the loss of one update (optimizer step).

        The texts of the update are divided into chunks, and the chunks are divided among the processes.

        Args:
            update: Number of the update, from 0.

        Returns:
            For each chunk of this process, a function without arguments. The function returns a summand of
            the loss (a scalar), and the number of tokens in the chunk. The summands of all chunks of all
            processes add up to the loss of the update.
        """
        config, batch = self.config, self._updates[update]
        return embedding_loss_parts(
            batch.ids,
            self._embed,
            partial(self._loss, batch=batch),
            width=config.model.hidden_size,
            chunk_tokens=config.chunk_tokens,
            seed=(config.seed, update),
            cache_gradients=False,
            world=self.world,
        )

    def evaluate(self) -> tuple[float, dict[str, float]]:
        """Evaluate the student on the dev data.

        Returns:
            A number by which the best model is chosen (lower is better), and further results for the log, by
            name.
        """
        return self.dev_criterion(self.metric)

    def _choose_groups(self, update: int) -> np.ndarray:
        """Choose the groups of texts for one update (optimizer step).

        Each epoch uses all groups once, in a new random order.

        Args:
            update: Number of the update, from 0.

        Returns:
            (config.groups,) indices of the chosen groups among all groups.
        """
        count, size = len(self.starts) - 1, self.config.groups
        places = np.arange(update * size, (update + 1) * size)
        result = np.empty(size, int)
        for epoch in np.unique(places // count):
            order = np.random.default_rng(combined_seed(self.config.seed, int(epoch))).permutation(count)
            inside = places // count == epoch
            result[inside] = order[places[inside] % count]
        return result

    def _make(self, update: int) -> DistillBatch:
        """Collect the tokenized texts and the targets for one update (optimizer step).

        Args:
            update: Number of the update, from 0.
        """
        groups = self._choose_groups(update)
        numbers = np.concatenate([np.arange(self.starts[g], self.starts[g + 1]) for g in groups])
        whole = self.targets.teacher_embeddings(numbers)
        return DistillBatch([self.ids[i] for i in numbers], self.targets.reduce(whole), whole @ whole.T)

    def _embed(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """Compute (B, D) float32 embeddings from (B, L) token ids and their (B, L) mask, 0 for padding."""
        with self.world.autocast(self.config.precision):
            return pooling.mean(self.model(tokens, mask), mask).float()

    def _loss(self, embeddings: Tensor, batch: DistillBatch) -> Tensor:
        """Compute the weighted sum of all losses from the (N, D) embeddings of a batch."""
        config, device = self.config, self.world.device
        targets, cosines = batch.targets.to(device), batch.cosines.to(device)
        loss = embeddings.new_zeros(())
        if config.cosine_weight:
            loss = loss + config.cosine_weight * cosine_loss(embeddings, targets)
        if config.squared_weight:
            loss = loss + config.squared_weight * squared_loss(embeddings, targets)
        if config.similarity_weight:
            loss = loss + config.similarity_weight * neighbour_distillation_loss(
                embeddings, cosines, config.temperature
            )
        return loss
