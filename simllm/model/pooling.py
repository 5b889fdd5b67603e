"""Pooling of token states into one embedding for each text (SIMLLM, section 4.2).

A pooling takes (B, L, D) states and a (B, L) mask, true for tokens that are not padding. It returns
(B, D) embeddings.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from simllm.errors import InputError


def cls(hidden: Tensor, mask: Tensor) -> Tensor:
    """Return the state of the first token, `<s>`."""
    return hidden[:, 0]


def mean(hidden: Tensor, mask: Tensor) -> Tensor:
    """Return the mean over all tokens, `<s>` and `</s>` included."""
    weights = mask[:, :, None].to(hidden.dtype)
    return (hidden * weights).sum(1) / weights.sum(1)


def maximum(hidden: Tensor, mask: Tensor) -> Tensor:
    """Return the maximum over all tokens, for each dimension."""
    return hidden.masked_fill(~mask[:, :, None], torch.finfo(hidden.dtype).min).amax(1)


POOLINGS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"cls": cls, "mean": mean, "max": maximum}


def get_pooling(name: str) -> Callable[[Tensor, Tensor], Tensor]:
    """Return the pooling with a name of `POOLINGS`; raise InputError if the name is unknown."""
    if name not in POOLINGS:
        raise InputError(f"pooling {name!r}: expected one of {', '.join(POOLINGS)}")
    return POOLINGS[name]
