"""Pooling functions: they turn (B, L, D) hidden states and a (B, L) mask into (B, D) embeddings.

See section 4.2 of the SIMLLM paper.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from simllm.array_types import AnyFloats
from simllm.errors import InputError


def of_last_layer(states: Tensor, hidden_size: int) -> Tensor:
    """Select the last layer's part, (…, D), of (…, N * D) hidden states.

    Weights of a linear layer that reads such states have the same order of columns, (outputs, N * D).
    """
    return states[..., -hidden_size:]


def cls(hidden: Tensor, mask: Tensor) -> Tensor:
    """Take the state of each text's first token, `<s>`."""
    return hidden[:, 0]


def mean(hidden: Tensor, mask: Tensor) -> Tensor:
    """Take the mean over each text's tokens, `<s>` and `</s>` included."""
    weights = mask[:, :, None].to(hidden.dtype)
    # No division by zero: every text has at least the tokens <s> and </s>.
    return (hidden * weights).sum(1) / weights.sum(1)


def maximum(hidden: Tensor, mask: Tensor) -> Tensor:
    """Take the maximum over each text's tokens, in each dimension."""
    return hidden.masked_fill(~mask[:, :, None], torch.finfo(hidden.dtype).min).amax(1)


POOLINGS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"cls": cls, "mean": mean, "max": maximum}


def get_pooling(name: str) -> Callable[[Tensor, Tensor], Tensor]:
    """Return the pooling function of this name: `cls`, `mean` or `max`."""
    if name not in POOLINGS:
        raise InputError(f"pooling {name!r}: expected one of {', '.join(POOLINGS)}")
    return POOLINGS[name]


def cosine(a: AnyFloats, b: AnyFloats) -> NDArray[np.float64]:
    """Compute the (n,) cosines of (n, D) vectors `a[i]` and `b[i]`; 0 if one of the two is zero.

    Equal vectors have a cosine of exactly 1, without a rounding error.
    """
    a, b = a.astype(np.float64), b.astype(np.float64)
    # One root of the product, not a product of two roots: then equal vectors give exactly 1.
    norms = np.sqrt((a * a).sum(1) * (b * b).sum(1))
    dots = (a * b).sum(1)
    return np.divide(dots, norms, out=np.zeros_like(dots), where=norms != 0).clip(-1.0, 1.0)


def inverse_euclidean(a: AnyFloats, b: AnyFloats) -> NDArray[np.float64]:
    """Compute 1 / (1 + Euclidean distance) of (n, D) vectors `a[i]` and `b[i]`: (n,) numbers in (0, 1]."""
    return 1.0 / (1.0 + np.linalg.norm(a.astype(np.float64) - b.astype(np.float64), axis=1))


TOKEN_SIMILARITY_NAMES = ("precision", "recall", "f1")  # implemented in `simllm.scoring.token_matching`
SIMILARITIES: dict[str, Callable[[AnyFloats, AnyFloats], NDArray[np.float64]]] = {
    "cosine": cosine,
    "inverse-euclidean": inverse_euclidean,
}


def get_similarity(name: str) -> Callable[[AnyFloats, AnyFloats], NDArray[np.float64]]:
    """Return the similarity of this name, a function of two (n, D) arrays that returns (n,) numbers."""
    if name not in SIMILARITIES:
        names = ", ".join((*SIMILARITIES, *TOKEN_SIMILARITY_NAMES))
        raise InputError(f"similarity {name!r}: expected one of {names}")
    return SIMILARITIES[name]
