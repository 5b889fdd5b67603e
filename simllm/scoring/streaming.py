"""Scores of pairs, chunk by chunk: while one chunk is encoded, the next is read and tokenized."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import count, islice
from typing import Any, TypeVar

import numpy as np

from simllm.errors import InputError
from simllm.scoring.encode import Tokenized, TooLongError
from simllm.scoring.pair_scorers import PairScorer
from simllm.scoring.scores import Scores

CHUNK = 1024  # pairs in a chunk of `SimLLM.stream`
Pair = TypeVar("Pair", bound=tuple[Any, ...])  # candidate, reference, anything else
Item = TypeVar("Item")
Result = TypeVar("Result")


def score_in_chunks(
    pairs: Iterable[Pair],
    tokenize: Callable[[list[str]], Tokenized],
    scorer: PairScorer,
    size: int,
    no_scores: Scores,
    first: int = 1,
) -> Iterator[tuple[list[Pair], Scores]]:
    """Yield every `size` pairs with their scores.

    Args:
        pairs: Tuples that begin with a candidate and its reference.
        tokenize: Cleans and tokenizes a list of texts.
        scorer: Scores tokenized pairs.
        size: Number of pairs in a chunk.
        no_scores: The scores of zero pairs; each chunk has their signature and calibration.
        first: The number of the first pair, for error messages.

    Raises:
        InputError: A text is too long and the tokenizer refuses long texts.
    """
    numbered = zip(count(first, size), chunks(pairs, size), strict=False)
    for chunk, texts in prefetch_map(lambda item: _tokenize_chunk(*item, tokenize), numbered):
        n = len(chunk)
        values, same = scorer(texts)
        empty = texts.empty
        either = empty[:n] | empty[n:]
        for i in np.flatnonzero(either):
            values[i] = float(chunk[i][0].split() == chunk[i][1].split())
            if same is not None:
                same[i] = values[i]
        unreadable = sum(bool(chunk[i % n][i // n].strip()) for i in np.flatnonzero(empty))
        yield (
            chunk,
            replace(
                no_scores,
                values=values,
                same=same,
                empty=int(either.sum()),
                unreadable=unreadable,
                truncated=len(texts.long),
                deduplicated=texts.repeated,
            ),
        )


def _tokenize_chunk(
    first: int, chunk: list[Pair], tokenize: Callable[[list[str]], Tokenized]
) -> tuple[list[Pair], Tokenized]:
    """Tokenize the candidates and then the references of a chunk whose pairs are numbered from `first`."""
    try:
        return chunk, tokenize([pair[side] for side in (0, 1) for pair in chunk])
    except TooLongError as error:
        side = "candidate" if error.index < len(chunk) else "reference"
        raise InputError(f"{side} {first + error.index % len(chunk)}: {error}") from None


def chunks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Yield lists of `size` items; the last list may be shorter."""
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk


def prefetch_map(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Map `function` over `items` in a thread that computes one result ahead."""
    pending: Future[Result] | None = None
    with ThreadPoolExecutor(1) as thread:
        for item in items:
            following = thread.submit(function, item)
            if pending:
                yield pending.result()
            pending = following
        if pending:
            yield pending.result()
