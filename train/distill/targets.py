"""The targets of distillation: the embeddings of all teachers, reduced to the student's width."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from simllm.errors import InputError
from simllm.model.torch_engine import pad
from train.distill.config import ImitationConfig
from train.distill.teachers import SHARD, embed_all, gather_embeddings, identity
from train.distill.texts import Group, StoredTexts
from train.runtime.distributed import World

_SAMPLE = 50_000  # texts for computing the principal axes
_BLOCK = 32  # texts whose neighbours are searched at once
_ROTATION_TEXTS = 8192  # texts for computing the rotation of the targets

Embed = Callable[[Tensor, Tensor], Tensor]  # (B, L) token ids and (B, L) mask -> (B, D) embeddings


def compute_principal_axes(vectors: np.ndarray, count: int) -> np.ndarray:
    """Compute the first `count` principal axes of (n, D) vectors as (D, count) orthonormal columns."""
    # Unlike PCA, the mean is not subtracted: that would change the cosines between the vectors.
    moments = vectors.T.astype(np.float64) @ vectors
    # `eigh` sorts the eigenvalues from small to large.
    return np.linalg.eigh(moments)[1][:, ::-1][:, :count].astype(np.float32)


class Targets:
    """The targets of all texts.

    The teachers' embeddings are concatenated, projected to the student's width, and scaled to length 1.

    Attributes:
        count: Number of texts.
        facts: A description of texts and teachers, which is stored with the trained model.
        shards: For each teacher, the list of arrays from `embed_all`.
        axes: (sum of the teachers' widths, student's width) projection, including the rotation.
    """

    def __init__(
        self,
        groups: Sequence[Group],
        shards: Sequence[Sequence[np.ndarray]],
        width: int,
        seed: int,
        facts: Mapping[str, object] | None = None,
    ) -> None:
        self.groups, self.shards, self.facts = groups, shards, dict(facts or {})
        self.count = sum(map(len, groups))
        sample = np.random.default_rng(seed).permutation(self.count)[:_SAMPLE]
        embeddings = self.teacher_embeddings(np.sort(sample)).numpy()
        if embeddings.shape[1] < width:
            raise InputError(
                f"the teachers' embeddings have width {embeddings.shape[1]}, the encoder's have width {width}"
            )
        self.axes = torch.from_numpy(compute_principal_axes(embeddings, width))

    def teacher_embeddings(self, numbers: np.ndarray) -> Tensor:
        """Return the concatenated embeddings of n texts: (n, sum of the teachers' widths), with length 1.

        The cosine of two concatenated embeddings is the mean of the teachers' cosines.
        """
        parts = [gather_embeddings(shards, numbers) for shards in self.shards]
        # Each part has length 1, and so has the whole after the division.
        return torch.cat(parts, dim=1) / len(parts) ** 0.5

    @cached_property
    def _all(self) -> Tensor:
        """All concatenated embeddings, (N, sum of the teachers' widths), in bfloat16 to save memory."""
        width = sum(shards[0].shape[1] for shards in self.shards)
        embeddings = torch.empty(self.count, width, dtype=torch.bfloat16)
        for start in range(0, self.count, SHARD):
            rows = np.arange(start, min(start + SHARD, self.count))
            embeddings[start : start + SHARD] = self.teacher_embeddings(rows)
        return embeddings

    def find_neighbours(self, numbers: np.ndarray, most: int) -> np.ndarray:
        """Return the (n, most) texts that are most similar to n texts by the teachers, the nearest first."""
        found = []
        for start in range(0, len(numbers), _BLOCK):
            block = torch.from_numpy(numbers[start : start + _BLOCK])
            similar = self._all[block] @ self._all.T
            similar[torch.arange(len(block)), block] = -torch.inf
            found.append(similar.topk(min(most, self.count - 1)).indices)
        return torch.cat(found).numpy()

    def reduce(self, teacher_embeddings: Tensor) -> Tensor:
        """Reduce concatenated embeddings to targets: (n, student's width), with length 1."""
        return torch.nn.functional.normalize(teacher_embeddings @ self.axes, dim=1)

    def rotate_towards(self, embeddings: Tensor, numbers: np.ndarray) -> None:
        """Rotate all targets, so that those of the texts `numbers` are as near as possible to (n, D)
        `embeddings`.

        The rotation minimizes the sum of squared distances (Schönemann, "A generalized solution of the
        orthogonal Procrustes problem", 1966). It changes no cosine between targets.
        """
        unit = torch.nn.functional.normalize(embeddings, dim=1)
        # `v` is already transposed: u @ v is the orthogonal Procrustes solution.
        u, _, v = torch.linalg.svd(self.reduce(self.teacher_embeddings(numbers)).T @ unit)
        self.axes = self.axes @ u @ v


def ngram_cosines(texts: Sequence[str]) -> Tensor:
    """Compute the (n, n) cosines between the counts of 2 to 5 characters in a row in n texts, from 0 to 1.

    They hear shared parts of words, such as those of identifiers, better than encoders of sentences do.
    """
    # Not installed on bare GPU images.
    from sklearn.feature_extraction.text import HashingVectorizer

    vectorizer = HashingVectorizer(
        analyzer="char", ngram_range=(2, 5), n_features=2**18, alternate_sign=False
    )
    unit = vectorizer.transform([f" {text} " for text in texts])
    return torch.from_numpy((unit @ unit.T).toarray().astype(np.float32))


def compute_targets(
    config: ImitationConfig, stored: StoredTexts, width: int, out: Path, world: World, seed: int
) -> Targets:
    """Compute the targets from the teachers' embeddings, as far as the run folder does not have them already.

    `width` is that of the encoder's embeddings; `seed` chooses the sample for the projection.
    """
    # A dict, so that a teacher that is named twice counts once.
    folders = world.first_then_others(
        lambda: {identity(Path(teacher)): Path(teacher) for teacher in config.teachers}
    )
    flat = stored.flat
    shards = [
        embed_all(teacher, flat, out / "teachers" / f"{stored.sha256[:12]}-{name}", world)
        for name, teacher in folders.items()
    ]
    facts = {"texts_sha256": stored.sha256, "texts": len(flat), "teachers": list(folders)}
    return world.in_all_processes(lambda: Targets(stored.groups, shards, width, seed, facts))


def rotate_towards_encoder(
    targets: Targets, ids: Sequence[Sequence[int]], embed: Embed, world: World
) -> None:
    """Rotate the targets in place towards the encoder's present embeddings: then they are easier to learn."""
    with torch.no_grad():
        some = sorted(range(min(_ROTATION_TEXTS, len(ids))), key=lambda i: len(ids[i]))  # to save padding
        parts = [pad([ids[i] for i in some[start : start + 64]]) for start in range(0, len(some), 64)]
        embeddings = torch.cat([embed(*map(world.to_device, part)) for part in parts])
        targets.rotate_towards(embeddings.cpu(), np.array(some))
