"""Scoring of text pairs in chunks: while the model encodes one chunk, the next one is read and tokenized."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import count, islice
from typing import Any, TypeVar

import numpy as np

from simllm.errors import InputError
from simllm.io.partial_file import PartialFile
from simllm.scoring.scores import COUNTS, Scores
from simllm.scoring.tokens import PairScorer, Tokenized, TooLongError, count_unreadable, score_empty_texts

CHUNK = 1024  # pairs in a chunk of `SimLLM.stream`
Pair = TypeVar("Pair", bound=tuple[Any, ...])  # a tuple of candidate, reference, and optionally more
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
    """Score pairs in chunks of `size`; yield each chunk with its scores.

    `tokenize` cleans and tokenizes a list of texts. `first` is the number of the first pair in the whole
    input, from 1; an InputError about a text that is too long names the text by this numbering.
    """
    numbered = zip(count(first, size), chunks(pairs, size), strict=False)
    for chunk, texts in prefetch_map(lambda item: _tokenize_chunk(*item, tokenize), numbered):
        # The scorer also scores pairs with an empty text, whose values are then overwritten.
        values, same = scorer(texts)
        empty = score_empty_texts(chunk, texts, values, same)
        yield (
            chunk,
            replace(
                no_scores,
                values=values,
                same=same,
                empty=empty,
                unreadable=count_unreadable(_texts_of(chunk), texts),
                truncated=len(texts.long),
                deduplicated=texts.repeated,
            ),
        )


def _texts_of(pairs: Sequence[Pair]) -> list[str]:
    """Return the texts of n pairs: first the n candidates, then their n references."""
    return [pair[side] for side in (0, 1) for pair in pairs]


def _tokenize_chunk(
    first: int, chunk: list[Pair], tokenize: Callable[[list[str]], Tokenized]
) -> tuple[list[Pair], Tokenized]:
    """Tokenize the 2n texts of a chunk; a text that is too long is named by its number among all pairs."""
    try:
        return chunk, tokenize(_texts_of(chunk))
    except TooLongError as error:
        side = "candidate" if error.index < len(chunk) else "reference"
        raise InputError(f"{side} {first + error.index % len(chunk)}: {error}") from None


def chunks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Yield the items in lists of `size` items; the last list may be shorter."""
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk


def prefetch_map(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Yield `function(item)` for each item in order; a background thread is one item ahead of the caller."""
    pending: Future[Result] | None = None
    # A thread is enough, because the tokenizer and torch release the lock of the interpreter.
    with ThreadPoolExecutor(1) as thread:
        for item in items:
            following = thread.submit(function, item)
            if pending:
                yield pending.result()
            pending = following
        if pending:
            yield pending.result()


Pairs = list[tuple[Any, ...]]  # tuples of candidate, reference, and optionally more
Chunk = tuple[Pairs, Scores]


def stream(
    score: Callable[[Iterable[tuple[Any, ...]], int], Iterator[Chunk]],
    pairs: Iterable[tuple[Any, ...]],
    partial: PartialFile,
    no_scores: Scores,
) -> Iterator[Chunk]:
    """Score all pairs of the input, and resume an earlier run that was stopped, with bit-identical scores.

    `score` takes the remaining pairs and the number of the first of them, from 1. Pairs must be JSON values.
    InputError if the pairs in the partial file differ from the input.
    """
    rest = iter(pairs)
    done = 0
    for old, scores in read_chunks(partial, no_scores):
        if json.dumps(old) != json.dumps(list(islice(rest, len(old)))):  # unlike ==, it can compare NaN
            raise InputError(f"{partial.path}: differs from the input after pair {done}; use the same input")
        done += len(old)
        yield old, scores
    for chunk, scores in score(rest, done + 1):
        counts = {name: getattr(scores, name) for name in COUNTS}
        same = None if scores.same is None else scores.same.tolist()
        # Stored before the caller gets the chunk, so that a stop while the caller writes loses no work.
        partial.append({"pairs": chunk, "values": scores.values.tolist(), "same": same, "counts": counts})
        yield chunk, scores


def read_chunks(partial: PartialFile, no_scores: Scores) -> Iterator[Chunk]:
    """Read the scored chunks that an earlier run stored in a partial file."""
    for record in partial.records():
        # JSON turns tuples into lists.
        pairs = [tuple(pair) for pair in record["pairs"]]
        same = np.array(record["same"]) if record.get("same") is not None else None
        yield pairs, replace(no_scores, values=np.array(record["values"]), same=same, **record["counts"])
