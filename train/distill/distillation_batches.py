"""The batches of distillation: the texts of each update (optimizer step), and the embeddings to learn.

An encoder learns the embeddings that its teachers (larger sentence encoders) give to the texts. Contrastive
training uses these batches, too, if its configuration has the key `imitation`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from torch import Tensor

from simllm.model.tokenizer import Tokenizer
from train.distill.config import ImitationConfig
from train.distill.pca_targets import Embed, Targets, rotate_towards_encoder
from train.distill.teacher_losses import weighted_loss
from train.runtime.distributed import World
from train.runtime.gradient_cache import embedding_loss_parts
from train.runtime.gradient_exchange import LossPart
from train.runtime.prefetch import Prefetcher
from train.runtime.seeded_random_numbers import combined_seed


@dataclass(frozen=True)
class ImitationBatch:
    """The N tokenized texts of one update (optimizer step), with the targets for their embeddings.

    Attributes:
        ids: The token ids of each text.
        targets: (N, D) embeddings that the encoder should learn.
        cosines: (N, N) similarity of every two texts: the cosine between a teacher's embeddings of the two
            texts, averaged over all teachers.
    """

    ids: list[list[int]]
    targets: Tensor
    cosines: Tensor


class Imitation:
    """Batches and loss for training an encoder on the embeddings of its teachers (larger encoders).

    The training texts are in groups, such as a text and its rewording. An update (optimizer step) uses whole
    groups.

    Args:
        config: The settings of the imitation.
        targets: The texts, and the embeddings that the encoder should learn. The constructor rotates the
            targets towards the encoder's present embeddings, so that they are easier to learn.
        tokenizer: The encoder's tokenizer.
        embed: Function that computes (B, D) embeddings from (B, L) token ids and their (B, L) mask. It uses
            the encoder that is being trained.
        max_length: The largest number of tokens of a text; longer texts are cut.
        chunk_tokens: The largest number of tokens in a chunk, padding included. A chunk is the texts that are
            embedded at once.
        temperature: The temperature of the softmax in `neighbour_distillation_loss`, which compares cosines
            between texts.
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
        self.starts = np.cumsum([0, *map(len, groups)])
        whole = tokenizer.encode([text for group in groups for text in group])
        self.ids = [tokenizer.truncate(ids, max_length) for ids in whole]
        self.first_texts = [group[0] for group in groups]
        rotate_towards_encoder(targets, self.ids, embed, world)
        self._updates = Prefetcher(self._make)

    def losses(self, update: int) -> list[LossPart]:
        """Prepare the computation of the loss of one update (optimizer step).

        The texts of the update are divided into chunks, and the chunks are divided among the processes.

        Args:
            update: Number of the update, from 0.

        Returns:
            For each chunk of this process, a function without arguments. The function returns a summand of
            the loss (a scalar), and the number of tokens in the chunk. The summands of all chunks of all
            processes add up to the loss of the update.
        """
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
        """Choose the groups of texts for one update (optimizer step).

        A group has texts that are used in the same update, such as a text and its rewording. Each epoch uses
        all groups once, in a new random order.

        Args:
            update: Number of the update, from 0.

        Returns:
            (G,) indices of the chosen groups among all groups; G is the number of groups in one update.
        """
        count, size = len(self.starts) - 1, self.config.groups
        places = np.arange(update * size, (update + 1) * size)
        result = np.empty(size, int)
        for epoch in np.unique(places // count):
            order = np.random.default_rng(combined_seed(self.seed, int(epoch))).permutation(count)
            inside = places // count == epoch
            result[inside] = order[places[inside] % count]
        return result

    def _make(self, update: int) -> ImitationBatch:
        """Collect the tokenized texts of one update (optimizer step), and what the encoder should learn.

        The encoder should learn an embedding of each text, and the cosine between every two texts. Both come
        from the embeddings of its teachers (larger encoders).

        Args:
            update: Number of the update, from 0.
        """
        groups = self.choose_groups(update)
        numbers = np.concatenate([np.arange(self.starts[g], self.starts[g + 1]) for g in groups])
        whole = self.targets.teacher_embeddings(numbers)
        return ImitationBatch([self.ids[i] for i in numbers], self.targets.reduce(whole), whole @ whole.T)

    def _loss(self, embeddings: Tensor, batch: ImitationBatch) -> Tensor:
        """Compute the weighted sum of the losses that compare the encoder with its teachers.

        Args:
            embeddings: (N, D) embeddings of the texts, computed by the encoder that is being trained.
            batch: The N texts, with the embeddings and the cosines between texts that the encoder should
                learn from its teachers.
        """
        device = self.world.device
        targets, cosines = batch.targets.to(device), batch.cosines.to(device)
        return weighted_loss(self.config, embeddings, targets, cosines, self.temperature)
