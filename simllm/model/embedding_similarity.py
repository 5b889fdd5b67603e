"""Similarity between two text embeddings (SIMLLM paper, section 4.3)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from simllm.array_types import AnyFloats
from simllm.errors import InputError


def cosine(a: AnyFloats, b: AnyFloats) -> NDArray[np.float64]:
    """Compute the cosine similarity of each pair of vectors.

    The result is 0 if one of the two vectors is zero. Equal vectors have a cosine of exactly 1, without a
    rounding error.

    Args:
        a: (n, D) vectors.
        b: (n, D) vectors; `b[i]` is compared with `a[i]`.

    Returns:
        (n,) cosines, from -1 to 1.
    """
    a, b = a.astype(np.float64), b.astype(np.float64)
    norms = np.sqrt((a * a).sum(1) * (b * b).sum(1))
    dots = (a * b).sum(1)
    return np.divide(dots, norms, out=np.zeros_like(dots), where=norms != 0).clip(-1.0, 1.0)


def inverse_euclidean(a: AnyFloats, b: AnyFloats) -> NDArray[np.float64]:
    """Compute 1 / (1 + Euclidean distance) for each pair of vectors.

    Args:
        a: (n, D) vectors.
        b: (n, D) vectors; `b[i]` is compared with `a[i]`.

    Returns:
        (n,) similarities, above 0 and at most 1.
    """
    return 1.0 / (1.0 + np.linalg.norm(a.astype(np.float64) - b.astype(np.float64), axis=1))


TOKEN_SIMILARITY_NAMES = ("precision", "recall", "f1")  # implemented in `simllm.scoring.token_matching`
SIMILARITIES: dict[str, Callable[[AnyFloats, AnyFloats], NDArray[np.float64]]] = {
    "cosine": cosine,
    "inverse-euclidean": inverse_euclidean,
}


def get_similarity(name: str) -> Callable[[AnyFloats, AnyFloats], NDArray[np.float64]]:
    """Return the similarity function called `name`: `cosine` or `inverse-euclidean`.

    The returned function takes two (n, D) arrays of embeddings, and computes (n,) similarities.

    Raises:
        InputError: The name is unknown.
    """
    if name not in SIMILARITIES:
        names = ", ".join((*SIMILARITIES, *TOKEN_SIMILARITY_NAMES))
        raise InputError(f"similarity {name!r}: expected one of {names}")
    return SIMILARITIES[name]
