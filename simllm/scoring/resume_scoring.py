"""Resumable scoring of text pairs.

Scores are written to a file (the partial file) as soon as they are computed. If the run is stopped, the next
run reads these scores, and computes only the scores of the other pairs.
"""

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
    """Score text pairs in chunks (lists of pairs), and resume an earlier run that was stopped.

    Chunks that the earlier run finished are read from a file, the partial file. New chunks are scored, and
    appended to this file. The scores are bit-identical to those of a run without an interruption.

    Args:
        score: A function that scores the remaining pairs, and yields chunks of pairs with their scores. Its
            arguments are the remaining pairs, and the position of the first remaining pair in the input,
            from 1.
        pairs: All pairs of the input, including those that are already scored. A pair is a tuple of JSON
            values: candidate, reference, and optionally more.
        partial: The file that stores finished chunks between runs.
        no_scores: An empty `Scores` object (the metric's result for an empty list of pairs). The file lacks
            some attributes of `Scores`, such as the calibration (the map from scores to percentiles). They
            are copied from this object.

    Yields:
        Chunks of pairs with their scores, in input order.

    Raises:
        InputError: The pairs in the partial file differ from `pairs`, or the file cannot be written.
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
        partial.append({"pairs": chunk, "values": scores.values.tolist(), "same": same, "counts": counts})
        yield chunk, scores


def read_chunks(partial: PartialFile, no_scores: Scores) -> Iterator[Chunk]:
    """Read the scored chunks (lists of text pairs) that an earlier run stored in a partial file.

    Args:
        partial: The file that stores finished chunks between runs.
        no_scores: An empty `Scores` object (the metric's result for an empty list of pairs). The file lacks
            some attributes of `Scores`, such as the calibration (the map from scores to percentiles). They
            are copied from this object.

    Yields:
        For each chunk: its pairs (tuples of candidate, reference and optionally more) and their scores.
    """
    for record in partial.records():
        pairs = [tuple(pair) for pair in record["pairs"]]
        same = np.array(record["same"]) if record.get("same") is not None else None
        yield pairs, replace(no_scores, values=np.array(record["values"]), same=same, **record["counts"])
