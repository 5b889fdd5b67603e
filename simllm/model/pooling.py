"""Pooling functions: they turn the hidden states of a text's tokens into one embedding.

A pooling function takes the (B, L, D) hidden states of B texts with L tokens; D is the hidden size. It also
takes a (B, L) mask, true for tokens that are not padding. It returns (B, D) embeddings. See section 4.2 of
the SIMLLM paper.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

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
