"""The targets of distillation: the embeddings of all teachers, reduced to the student's width.

The reduction is a projection on principal axes, as in principal component analysis (PCA).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from simllm.errors import InputError
from simllm.model.token_batches import pad
from train.distill.config import ImitationConfig
from train.distill.distillation_texts import Group, StoredTexts
from train.distill.teacher_embeddings import embed_all, gather_embeddings, identity
from train.runtime.distributed import World

_SAMPLE = 50_000  # texts for computing the principal axes
_ROTATION_TEXTS = 8192  # texts for computing the rotation of the targets

Embed = Callable[[Tensor, Tensor], Tensor]  # (B, L) token ids and (B, L) mask -> (B, D) embeddings


def compute_principal_axes(vectors: np.ndarray, count: int) -> np.ndarray:
    """Compute the first `count` principal axes of n vectors, without subtracting their mean.

    Subtracting the mean, as in PCA, would change the cosines between the vectors. The projection on these
    axes nearly keeps the cosines, and the lengths of the vectors.

    Args:
        vectors: (n, D) vectors.
        count: Number of axes.

    Returns:
        (D, count) axes, which are orthonormal columns.
    """
    moments = vectors.T.astype(np.float64) @ vectors
    return np.linalg.eigh(moments)[1][:, ::-1][:, :count].astype(np.float32)


class Targets:
    """The embeddings that the student should learn, computed from the embeddings of all teachers.

    The teachers' embeddings are concatenated, projected to the student's width, and scaled to length 1.
    `rotate_towards` can then rotate all targets, so that they are near the untrained student's embeddings and
    easier to learn (Schönemann, "A generalized solution of the orthogonal Procrustes problem", 1966). The
    rotation changes no cosine between targets.

    Attributes:
        groups: The texts in groups. Texts in one group, such as a text and its rewording, are used in the
            same update (optimizer step).
        facts: A description of the texts and the teachers, such as the number of texts, as a dict. It is
            stored with the trained model.
        shards: For each teacher, the list of arrays from `embed_all`. Together, the arrays of a teacher
            have its embeddings of all texts.
        axes: (sum of the teachers' widths, student's width) matrix of the projection, including the rotation.
    """

    def __init__(
        self,
        groups: Sequence[Group],
        shards: Sequence[Sequence[np.ndarray]],
        width: int,
        seed: int,
        facts: Mapping[str, object] | None = None,
    ) -> None:
        """Compute the projection of the teachers' embeddings to the student's width, from a sample of texts.

        Args:
            groups: The texts. Texts in one group, such as a text and its rewording, are used in the same
                update (optimizer step).
            shards: For each teacher, the list of arrays from `embed_all`. Together, the arrays of a teacher
                have its embeddings of all texts.
            width: Width of the student's embeddings.
            seed: Seed for choosing the sample.
            facts: A description of the texts and the teachers, as a dict. It does not affect the projection.

        Raises:
            InputError: The sum of the teachers' widths is less than `width`.
        """
        self.groups, self.shards, self.facts = groups, shards, dict(facts or {})
        sample = np.random.default_rng(seed).permutation(sum(map(len, groups)))[:_SAMPLE]
        embeddings = self.teacher_embeddings(np.sort(sample)).numpy()
        if embeddings.shape[1] < width:
            raise InputError(
                f"the teachers' embeddings have width {embeddings.shape[1]}, the encoder's have width {width}"
            )
        self.axes = torch.from_numpy(compute_principal_axes(embeddings, width))

    def teacher_embeddings(self, numbers: np.ndarray) -> Tensor:
        """Return the concatenated embeddings of all teachers for n texts.

        The concatenated embeddings are scaled to length 1. For two texts, each teacher gives a cosine. The
        cosine of the concatenated embeddings is the mean of the teachers' cosines.

        Args:
            numbers: (n,) indices of the texts among all training texts.

        Returns:
            (n, sum of the teachers' widths) embeddings, with length 1.
        """
        parts = [gather_embeddings(shards, numbers) for shards in self.shards]
        return torch.cat(parts, dim=1) / len(parts) ** 0.5

    def reduce(self, teacher_embeddings: Tensor) -> Tensor:
        """Reduce the teachers' embeddings of n texts to targets: embeddings that the student should learn.

        Args:
            teacher_embeddings: (n, sum of the teachers' widths), from the method `teacher_embeddings`.

        Returns:
            (n, student's width) targets, with length 1.
        """
        return torch.nn.functional.normalize(teacher_embeddings @ self.axes, dim=1)

    def rotate_towards(self, embeddings: Tensor, numbers: np.ndarray) -> None:
        """Rotate the targets of all texts, so that the targets of n chosen texts are near given embeddings.

        Targets are the embeddings that the student should learn. The rotation minimizes the sum of squared
        distances between the targets of the chosen texts and the given embeddings.

        Args:
            embeddings: (n, student's width) embeddings of the n chosen texts, such as those of the untrained
                student. They are first scaled to length 1.
            numbers: (n,) indices of the n chosen texts among all training texts.
        """
        unit = torch.nn.functional.normalize(embeddings, dim=1)
        u, _, v = torch.linalg.svd(self.reduce(self.teacher_embeddings(numbers)).T @ unit)
        self.axes = self.axes @ u @ v


def compute_targets(
    config: ImitationConfig, stored: StoredTexts, width: int, out: Path, world: World, seed: int
) -> Targets:
    """Compute the targets (the embeddings that an encoder should learn) from the teachers' embeddings.

    The teachers' embeddings are loaded from the folder of the run. Missing embeddings are computed, and
    stored there. The embeddings of all teachers are concatenated, projected to the encoder's width, and
    scaled to length 1.

    Args:
        config: The settings, with the folders of the teachers (larger encoders).
        stored: The training texts.
        width: Width of the encoder's embeddings.
        out: The folder of the run.
        world: The processes of the run.
        seed: Seed for choosing a sample of the texts. The projection is computed from this sample.

    Raises:
        InputError: A teacher cannot be loaded, or the sum of the teachers' widths is less than `width`.
    """
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
    """Rotate the targets of all texts, so that they are near the encoder's present embeddings.

    Targets are the embeddings that the encoder should learn. The rotation makes them easier to learn. It is
    computed from the first 8192 texts.

    Args:
        targets: The targets, which are rotated in place.
        ids: The token ids of each text, for all texts.
        embed: Function that computes the encoder's (B, D) embeddings from (B, L) token ids and their (B, L)
            mask.
        world: The processes of the run. The embeddings are computed on the device of this process.
    """
    with torch.no_grad():
        some = np.arange(min(_ROTATION_TEXTS, len(ids)))
        parts = [pad(ids[i : i + 64]) for i in range(0, len(some), 64)]
        embeddings = torch.cat([embed(*(x.to(world.device) for x in part)) for part in parts])
        targets.rotate_towards(embeddings.cpu(), some)
