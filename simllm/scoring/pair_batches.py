"""Division of text pairs into groups, so that the hidden states for one group fit into memory."""

from __future__ import annotations

from collections.abc import Iterator

from simllm.scoring.token_windows import Windows

_TOKENS = 16_384  # tokens whose states are in memory at once: 16 MB with 256 dimensions


def split_pairs(candidates: list[Windows], references: list[Windows]) -> Iterator[list[int]]:
    """Split n pairs, given as the windows of their texts, into groups of at most 16,384 tokens.

    Each group is a list of indices. A pair with more tokens is a group of its own.
    """
    sizes = [sum(map(len, (*a, *b))) for a, b in zip(candidates, references, strict=True)]
    part: list[int] = []
    space = _TOKENS
    # Pairs with equal references become neighbours, and usually share a group, which encodes the reference
    # once.
    for i in sorted(range(len(sizes)), key=lambda i: (sum(map(len, references[i])), references[i])):
        if part and sizes[i] > space:
            yield part
            part, space = [], _TOKENS
        part.append(i)
        space -= sizes[i]
    if part:
        yield part
