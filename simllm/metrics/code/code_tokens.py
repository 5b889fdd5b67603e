"""Tokens of code and their n-grams, for the BLEU metrics of code."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

NGram = tuple[str, ...]
_TOKEN = re.compile(r"\w+|[^\w\s]")


def tokenize(text: str) -> list[str]:
    """Split code into words and single punctuation characters: `x1+=2` becomes `x1`, `+`, `=`, `2`."""
    return _TOKEN.findall(text)


def ngrams(tokens: Sequence[str], order: int) -> Iterator[NGram]:
    """Yield the n-grams of a list of tokens, where n is `order`."""
    return zip(*(tokens[start:] for start in range(order)), strict=False)
