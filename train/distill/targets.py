"""The targets of a distillation: the embeddings of all teachers, reduced to the student's width."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from simllm.errors import InputError
from train.distill import teachers

_SAMPLE = 50_000  # texts for computing the principal axes


def principal_axes(vectors: np.ndarray, count: int) -> np.ndarray:
    """Return the first principal axes of (n, D) vectors, without centring: (D, count), orthonormal.

    Without centring, projection on the axes preserves cosines and lengths as well as possible.
    """
    moments = vectors.T.astype(np.float64) @ vectors
    return np.linalg.eigh(moments)[1][:, ::-1][:, :count].astype(np.float32)


class Targets:
    """The embeddings of all teachers, side by side, and their reduction to the student's width.

    The reduced targets are rotated once, all in the same way, towards the student's embeddings. Cosines
    between targets do not change, and the student need not learn the rotation (Schönemann,
    "A generalized solution of the orthogonal Procrustes problem", 1966).
    """

    def __init__(self, shards: Sequence[Sequence[np.ndarray]], texts: int, width: int, seed: int) -> None:
        """Compute the principal axes of a sample of texts.

        Args:
            shards: The shards of each teacher.
            texts: Number of texts.
            width: Width of the student's embeddings, D.
            seed: Seed of the sample.

        Raises:
            InputError: The teachers' embeddings together are narrower than the student's.
        """
        self.shards = shards
        sample = np.random.default_rng(seed).permutation(texts)[:_SAMPLE]
        embeddings = self.teacher_embeddings(np.sort(sample)).numpy()
        if embeddings.shape[1] < width:
            raise InputError(
                f"model.hidden_size {width}: the teachers' embeddings have {embeddings.shape[1]}"
            )
        self.axes = torch.from_numpy(principal_axes(embeddings, width))

    def teacher_embeddings(self, numbers: np.ndarray) -> Tensor:
        """Return the concatenated embeddings of all teachers for some texts, of length 1.

        The inner product of two texts is the mean of the teachers' cosines.
        """
        parts = [teachers.gather_embeddings(shards, numbers) for shards in self.shards]
        return torch.cat(parts, dim=1) / len(parts) ** 0.5

    def reduce(self, teacher_embeddings: Tensor) -> Tensor:
        """Project (n, sum of D) embeddings to (n, D of the student), of length 1."""
        return torch.nn.functional.normalize(teacher_embeddings @ self.axes, dim=1)

    def rotate_towards(self, embeddings: Tensor, numbers: np.ndarray) -> None:
        """Rotate all targets so that the targets of n texts are as near as possible to (n, D) embeddings."""
        unit = torch.nn.functional.normalize(embeddings, dim=1)
        u, _, v = torch.linalg.svd(self.reduce(self.teacher_embeddings(numbers)).T @ unit)
        self.axes = self.axes @ u @ v
