"""Scoring of text pairs in chunks: while the model encodes one chunk, the next one is read and tokenized."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import count, islice
from typing import Any, TypeVar

from simllm.errors import InputError
from simllm.scoring.empty_texts import count_unreadable, score_empty_texts
from simllm.scoring.pair_scorer_interface import PairScorer
from simllm.scoring.scores import Scores
from simllm.scoring.token_windows import Tokenized, TooLongError

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
