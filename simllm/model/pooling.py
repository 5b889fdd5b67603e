"""Pooling functions: they turn the hidden states of a text's tokens into one embedding.

A pooling function takes the (B, L, D) hidden states of B texts with L tokens; D is the hidden size. It also
takes a (B, L) mask, true for tokens that are not padding. It returns (B, D) embeddings. See section 4.2 of
the SIMLLM paper.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from simllm.array_types import AnyFloats
from simllm.errors import InputError


def cls(hidden: Tensor, mask: Tensor) -> Tensor:
    """Pool hidden states into embeddings: take the state of each text's first token, `<s>`.

    Args:
        hidden: (B, L, D) hidden states of B texts with L tokens; D is the hidden size.
        mask: Not used; it is here because every pooling function has this argument.

    Returns:
        (B, D) embeddings.
    """
    return hidden[:, 0]


def mean(hidden: Tensor, mask: Tensor) -> Tensor:
    """Pool hidden states into embeddings by the mean over each text's tokens, `<s>` and `</s>` included.

    Args:
        hidden: (B, L, D) hidden states of B texts with L tokens; D is the hidden size.
        mask: (B, L) bool, true for tokens that are not padding.

    Returns:
        (B, D) embeddings.
    """
    weights = mask[:, :, None].to(hidden.dtype)
    return (hidden * weights).sum(1) / weights.sum(1)


def maximum(hidden: Tensor, mask: Tensor) -> Tensor:
    """Pool hidden states into embeddings: in each dimension, take the maximum over each text's tokens.

    Args:
        hidden: (B, L, D) hidden states of B texts with L tokens; D is the hidden size.
        mask: (B, L) bool, true for tokens that are not padding.

    Returns:
        (B, D) embeddings.
    """
    return hidden.masked_fill(~mask[:, :, None], torch.finfo(hidden.dtype).min).amax(1)


POOLINGS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"cls": cls, "mean": mean, "max": maximum}


def get_pooling(name: str) -> Callable[[Tensor, Tensor], Tensor]:
    """Return the pooling function called `name`: `cls`, `mean` or `max`; raise InputError for other names.

    The returned function takes (B, L, D) hidden states and a (B, L) mask, and computes (B, D) embeddings.
    """
    if name not in POOLINGS:
        raise InputError(f"pooling {name!r}: expected one of {', '.join(POOLINGS)}")
    return POOLINGS[name]


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
