"""From token states to one embedding a text (SIMLLM, section 4.2)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from simllm.errors import InputError


def cls(hidden: Tensor, mask: Tensor) -> Tensor:
    """(B, L, D), (B, L) -> (B, D): the state of `<s>`."""
    return hidden[:, 0]


def mean(hidden: Tensor, mask: Tensor) -> Tensor:
    """(B, L, D), (B, L) -> (B, D): the mean over all tokens, `<s>` and `</s>` included."""
    weights = mask[:, :, None].to(hidden.dtype)
    return (hidden * weights).sum(1) / weights.sum(1)


def maximum(hidden: Tensor, mask: Tensor) -> Tensor:
    """(B, L, D), (B, L) -> (B, D): the maximum over all tokens, dimension by dimension."""
    return hidden.masked_fill(~mask[:, :, None], torch.finfo(hidden.dtype).min).amax(1)


POOLINGS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"cls": cls, "mean": mean, "max": maximum}


def named(name: str) -> Callable[[Tensor, Tensor], Tensor]:
    """Return the pooling called `name`; raise InputError for any other name."""
    if name not in POOLINGS:
        raise InputError(f"pooling {name!r}: expected one of {', '.join(POOLINGS)}")
    return POOLINGS[name]
