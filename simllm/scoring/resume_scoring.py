"""Resumable scoring: a later run reads the finished chunks of an earlier run from a partial file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from simllm.errors import InputError
from simllm.io.partial_file import PartialFile
from simllm.scoring.scores import COUNTS, Scores

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
