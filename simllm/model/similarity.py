"""From two embeddings to one score (SIMLLM, section 4.3)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from simllm.errors import InputError

Floats = NDArray[np.floating]


def cosine(a: Floats, b: Floats) -> NDArray[np.float64]:
    """Return the (n,) cosines of n pairs of vectors, (n, d) and (n, d), in -1..1; 0 for a zero vector.

    The cosine of equal vectors is exactly 1: the root of a square has no rounding error.
    """
    a, b = a.astype(np.float64), b.astype(np.float64)
    norms = np.sqrt((a * a).sum(1) * (b * b).sum(1))
    dots = (a * b).sum(1)
    return np.divide(dots, norms, out=np.zeros_like(dots), where=norms != 0).clip(-1.0, 1.0)


def inverse_euclidean(a: Floats, b: Floats) -> NDArray[np.float64]:
    """Return 1 / (1 + Euclidean distance) for n pairs of vectors, (n, d) and (n, d) -> (n,), in 0..1."""
    return 1.0 / (1.0 + np.linalg.norm(a.astype(np.float64) - b.astype(np.float64), axis=1))


BY_TOKEN = ("precision", "recall", "f1")  # compare token by token (`simllm.scoring.token_matching`)
SIMILARITIES: dict[str, Callable[[Floats, Floats], NDArray[np.float64]]] = {
    "cosine": cosine,
    "inverse-euclidean": inverse_euclidean,
}


def named(name: str) -> Callable[[Floats, Floats], NDArray[np.float64]]:
    """Return the similarity called `name`; raise InputError for any other name."""
    if name not in SIMILARITIES:
        raise InputError(f"similarity {name!r}: expected one of {', '.join((*SIMILARITIES, *BY_TOKEN))}")
    return SIMILARITIES[name]
