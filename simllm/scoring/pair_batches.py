"""Division of text pairs into groups, so that the hidden states for one group fit into memory.

The hidden states are the encoder's outputs for the tokens. The number of tokens in a group is limited.
"""

from __future__ import annotations

from collections.abc import Iterator

from simllm.scoring.token_windows import Windows

_TOKENS = 16_384  # tokens whose states are in memory at once: 16 MB with 256 dimensions


def split_pairs(candidates: list[Windows], references: list[Windows]) -> Iterator[list[int]]:
    """Split n text pairs into groups of at most 16,384 tokens, to limit the memory for hidden states.

    The pairs are first sorted by their references: by length, then by token ids. So pairs with equal
    references are neighbours, and usually in the same group. Within a group, a repeated reference is encoded
    only once.

    Args:
        candidates: For each candidate, its windows: the token ids of consecutive pieces of the text.
        references: For each reference, its windows.

    Yields:
        For each group, the indices of its pairs. A pair with more than 16,384 tokens is a group of its own.
    """
    sizes = [sum(map(len, (*a, *b))) for a, b in zip(candidates, references, strict=True)]
    part: list[int] = []
    space = _TOKENS
    for i in sorted(range(len(sizes)), key=lambda i: (sum(map(len, references[i])), references[i])):
        if part and sizes[i] > space:
            yield part
            part, space = [], _TOKENS
        part.append(i)
        space -= sizes[i]
    if part:
        yield part
