"""Pairs to scores, chunk by chunk: while one is encoded, the next is read and tokenized."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import count, islice
from typing import TypeVar

import numpy as np

from simllm.errors import InputError
from simllm.scoring.encode import Tokenized, TooLongError
from simllm.scoring.pair_scorers import Measure
from simllm.scoring.scores import Scores

Pair = tuple[str, str]  # candidate, reference
Item = TypeVar("Item")
Result = TypeVar("Result")


def scored(
    pairs: Iterable[Pair],
    tokenize: Callable[[list[str]], Tokenized],
    measure: Measure,
    size: int,
    blank: Scores,
    first: int = 1,
) -> Iterator[Scores]:
    """Yield the scores of every `size` pairs; what is the same for all is taken from `blank`.

    The pairs are numbered from `first`, for errors.
    """
    numbered = zip(count(first, size), chunks(pairs, size), strict=False)
    for chunk, texts in ahead(lambda item: _prepared(*item, tokenize), numbered):
        n = len(chunk)
        values = measure(texts)
        empty = texts.empty
        either = empty[:n] | empty[n:]
        for i in np.flatnonzero(either):
            values[i] = float(chunk[i][0].split() == chunk[i][1].split())
        unreadable = sum(bool(chunk[i % n][i // n].strip()) for i in np.flatnonzero(empty))
        yield replace(
            blank,
            values=values,
            empty=int(either.sum()),
            unreadable=unreadable,
            truncated=len(texts.long),
            deduplicated=texts.repeated,
        )


def _prepared(
    first: int, chunk: list[Pair], tokenize: Callable[[list[str]], Tokenized]
) -> tuple[list[Pair], Tokenized]:
    """Tokenize a chunk, the candidates and then the references; its pairs are numbered from `first`."""
    try:
        return chunk, tokenize([pair[side] for side in (0, 1) for pair in chunk])
    except TooLongError as error:
        side = "candidate" if error.index < len(chunk) else "reference"
        raise InputError(f"{side} {first + error.index % len(chunk)}: {error}") from None


def chunks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Yield lists of `size` items, the last one shorter."""
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk


def ahead(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Map `function` over `items` in a thread, one item ahead of whoever takes the results."""
    pending: Future[Result] | None = None
    with ThreadPoolExecutor(1) as thread:
        for item in items:
            following = thread.submit(function, item)
            if pending:
                yield pending.result()
            pending = following
        if pending:
            yield pending.result()
