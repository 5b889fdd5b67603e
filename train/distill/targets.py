"""The targets of a distillation: the embeddings of all teachers, reduced to the student's width."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from simllm.errors import InputError
from train.distill import teachers

_SAMPLE = 50_000  # texts that the principal axes are computed from


def principal_axes(vectors: np.ndarray, count: int) -> np.ndarray:
    """Return the (D, count) orthonormal axes that keep most of (n, D) vectors, without centring.

    Cosines and lengths stay the same as far as the axes allow, which centring would not grant.
    """
    moments = vectors.T.astype(np.float64) @ vectors
    return np.linalg.eigh(moments)[1][:, ::-1][:, :count].astype(np.float32)


class Targets:
    """The embeddings of all teachers, side by side, and their reduction to the student's width.

    The reduced targets are turned once, all by the same rotation, to where the student stands. Cosines
    between targets do not change, and the student need not turn its whole space first (Schönemann,
    "A generalized solution of the orthogonal Procrustes problem", 1966).
    """

    def __init__(self, shards: Sequence[Sequence[np.ndarray]], texts: int, width: int, seed: int) -> None:
        """Find the principal axes.

        Args:
            shards: Of each teacher, its shards.
            texts: Number of texts.
            width: Of the student's embeddings, D.
            seed: Of the sample.

        Raises:
            InputError: The teachers' embeddings together are narrower than the student's.
        """
        self.shards = shards
        sample = np.random.default_rng(seed).permutation(texts)[:_SAMPLE]
        found = self.whole(np.sort(sample)).numpy()
        if found.shape[1] < width:
            raise InputError(f"model.hidden_size {width}: the teachers' embeddings have {found.shape[1]}")
        self.axes = torch.from_numpy(principal_axes(found, width))

    def whole(self, numbers: np.ndarray) -> Tensor:
        """Return the teachers' embeddings of some texts side by side, of length 1.

        The inner product of two is the mean of the teachers' cosines.
        """
        parts = [teachers.rows(shards, numbers) for shards in self.shards]
        return torch.cat(parts, dim=1) / len(parts) ** 0.5

    def reduced(self, whole: Tensor) -> Tensor:
        """(n, sum of D) -> (n, D of the student), of length 1."""
        return torch.nn.functional.normalize(whole @ self.axes, dim=1)

    def turn(self, embeddings: Tensor, numbers: np.ndarray) -> None:
        """Rotate the targets so that those of some texts come as near as possible to (n, D) embeddings."""
        unit = torch.nn.functional.normalize(embeddings, dim=1)
        u, _, v = torch.linalg.svd(self.reduced(self.whole(numbers)).T @ unit)
        self.axes = self.axes @ u @ v
