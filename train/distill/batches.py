"""The batches of distillation and of imitation: the texts of each update, and the embeddings to learn."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from torch import Tensor

from simllm.model.tokenizer import Tokenizer
from train.distill.config import ImitationConfig
from train.distill.losses import weighted_loss
from train.distill.targets import Embed, Targets, rotate_towards_encoder
from train.runtime.batching import Prefetcher, combined_seed
from train.runtime.distributed import World
from train.runtime.gradient_cache import embedding_loss_parts
from train.runtime.gradient_exchange import LossPart


@dataclass(frozen=True)
class ImitationBatch:
    """The N tokenized texts of one update, and what the encoder should learn.

    Attributes:
        targets: (N, D) embeddings.
        cosines: (N, N) cosines between texts, averaged over all teachers.
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
        whole = tokenizer.encode([text for group in groups for text in group])
        self.ids = [tokenizer.truncate(ids, max_length) for ids in whole]
        self.first_texts = [group[0] for group in groups]
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
        groups = self.choose_groups(update)
        numbers = np.concatenate([np.arange(self.starts[g], self.starts[g + 1]) for g in groups])
        whole = self.targets.teacher_embeddings(numbers)
        return ImitationBatch([self.ids[i] for i in numbers], self.targets.reduce(whole), whole @ whole.T)

    def _loss(self, embeddings: Tensor, batch: ImitationBatch) -> Tensor:
        """Compute the loss of an update from the (N, D) embeddings of its texts."""
        device = self.world.device
        targets, cosines = batch.targets.to(device), batch.cosines.to(device)
        return weighted_loss(self.config, embeddings, targets, cosines, self.temperature)
