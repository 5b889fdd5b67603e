"""Imitation: an encoder learns the embeddings that its teachers (larger sentence encoders) give to texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from simllm.evaluation import contrast
from simllm.model.tokenizer import Tokenizer
from simllm.scoring.embed_texts import pad
from train.distill import teachers, texts
from train.distill.config import ImitationConfig
from train.distill.pca_targets import Targets
from train.distill.teacher_losses import cosine_loss, neighbour_distillation_loss, squared_loss
from train.distill.texts import Group
from train.pretrain.batches import combined_seed
from train.runtime.distributed import World
from train.runtime.gradient_cache import embedding_loss_parts
from train.runtime.gradient_exchange import LossPart
from train.runtime.log_file import print_progress
from train.runtime.prefetch import Prefetcher
from train.runtime.run_folder import short_hash

_ROTATION_TEXTS = 8192  # texts for computing the rotation of the targets

Embed = Callable[[Tensor, Tensor], Tensor]  # (B, L) token ids and (B, L) mask -> (B, D) embeddings


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


@dataclass(frozen=True)
class StoredTexts:
    """The texts whose embeddings an encoder learns from its teachers, and the folder that stores the texts.

    Attributes:
        groups: The texts in groups. Texts in one group, such as a text and its rewording, are used in the
            same update (optimizer step).
        folder: The folder that stores the texts. It may have more texts than `groups`, because the setting
            `max_texts` limits `groups`.
        sha256: A SHA-256 of all texts in the folder.
    """

    groups: list[Group]
    folder: Path
    sha256: str

    @property
    def flat(self) -> list[str]:
        """All texts of all groups, in order."""
        return [text for group in self.groups for text in group]


def collect_texts(
    config: ImitationConfig,
    out: Path,
    world: World,
    *,
    exclude: Sequence[str],
    hold_out_contrast: bool,
    seed: int,
) -> StoredTexts:
    """Collect the texts whose embeddings are learned, or load them if this run has collected them before.

    Args:
        config: The settings of the imitation.
        out: The folder of the run.
        world: The processes of the run.
        exclude: Files with text pairs that people have rated. Their texts are left out.
        hold_out_contrast: Whether rules that make variants of texts must not exchange words that the contrast
            set (a test set) asks to distinguish, such as "open" and "close".
        seed: Seed for choosing texts and making variants.

    Raises:
        InputError: A file of texts cannot be read, or no text is left.
    """
    held_out = frozenset(contrast.deciding_word_pairs() if hold_out_contrast else ())
    choice = short_hash([asdict(source) for source in config.texts], list(exclude), sorted(held_out), seed)
    folder = out / "texts" / choice
    groups, flat = world.first_then_others(
        lambda: texts.flatten(texts.gather(config.texts, exclude, held_out, seed, folder), config.max_texts)
    )
    if world.is_first:
        print_progress(f"  {len(groups):,} groups, {len(flat):,} texts")
    return StoredTexts(groups, folder, texts.digest(folder))


def compute_targets(
    config: ImitationConfig, stored: StoredTexts, width: int, out: Path, world: World, seed: int
) -> Targets:
    """Compute the targets (the embeddings that an encoder should learn) from the teachers' embeddings.

    The teachers' embeddings are loaded from the folder of the run. Missing embeddings are computed, and
    stored there. The targets are the teachers' embeddings, projected to the encoder's width.

    Args:
        config: The settings of the imitation.
        stored: The texts.
        width: Width of the encoder's embeddings.
        out: The folder of the run.
        world: The processes of the run.
        seed: Seed for choosing a sample of the texts, from which the projection is computed.

    Raises:
        InputError: A teacher cannot be loaded, or all teachers together are narrower than the encoder.
    """
    folders = world.first_then_others(
        lambda: {teachers.identity(Path(teacher)): Path(teacher) for teacher in config.teachers}
    )
    flat = stored.flat
    shards = [
        teachers.embed_all(teacher, flat, out / "teachers" / f"{stored.sha256[:12]}-{name}", world)
        for name, teacher in folders.items()
    ]
    facts = {"texts_sha256": stored.sha256, "texts": len(flat), "teachers": list(folders)}
    return world.in_all_processes(lambda: Targets(stored.groups, shards, width, seed, facts))


class Imitation:
    """Batches and loss for training an encoder on the embeddings of its teachers.

    Args:
        config: The settings of the imitation.
        targets: The texts, and the embeddings that the encoder should learn. The constructor rotates the
            targets towards the encoder's present embeddings, so that they are easier to learn.
        tokenizer: The encoder's tokenizer.
        embed: Function that embeds texts with the encoder in training.
        max_length: The largest number of tokens of a text; longer texts are cut.
        chunk_tokens: The largest number of tokens that are embedded at once, padding included.
        temperature: The temperature of the softmax in `neighbour_distillation_loss`, which compares cosines
            between texts.
        cache_gradients: Whether to save memory by embedding each chunk of texts twice.
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
        with torch.no_grad():
            some = np.arange(min(_ROTATION_TEXTS, len(self.ids)))
            parts = [pad(self.ids[i : i + 64]) for i in range(0, len(some), 64)]
            embeddings = torch.cat([embed(*(x.to(world.device) for x in part)) for part in parts])
            targets.rotate_towards(embeddings.cpu(), some)
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
            order = np.random.default_rng(combined_seed(self.seed, int(epoch))).permutation(count)
            inside = places // count == epoch
            result[inside] = order[places[inside] % count]
        return result

    def _make(self, update: int) -> ImitationBatch:
        """Collect the tokenized texts and the targets for one update (optimizer step).

        Args:
            update: Number of the update, from 0.
        """
        groups = self.choose_groups(update)
        numbers = np.concatenate([np.arange(self.starts[g], self.starts[g + 1]) for g in groups])
        whole = self.targets.teacher_embeddings(numbers)
        return ImitationBatch([self.ids[i] for i in numbers], self.targets.reduce(whole), whole @ whole.T)

    def _loss(self, embeddings: Tensor, batch: ImitationBatch) -> Tensor:
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
                embeddings, cosines, self.temperature
            )
        return loss
