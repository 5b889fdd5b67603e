"""Scoring that can be stopped: finished chunks go to a partial file, and a later run reads them back."""

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

Pairs = list[tuple[Any, ...]]  # candidate, reference, anything else
Chunk = tuple[Pairs, Scores]


def stream(
    score: Callable[[Iterable[tuple[Any, ...]], int], Iterator[Chunk]],
    pairs: Iterable[tuple[Any, ...]],
    partial: PartialFile,
    no_scores: Scores,
) -> Iterator[Chunk]:
    """Score pairs chunk by chunk, but read the chunks that the partial file holds from there.

    New chunks are appended to the partial file. The chunks are the same as without a stop, and so
    are the scores, to the last bit.

    Args:
        score: `SimLLM.stream`.
        pairs: All pairs, from the first, as tuples of JSON values.
        partial: The partial file; its head names the signature of the metric.
        no_scores: The scores of zero pairs; each chunk has their signature and calibration.

    Yields:
        Pairs and their scores, in input order.

    Raises:
        InputError: The pairs in the partial file differ from `pairs`, or it cannot be written.
    """
    rest = iter(pairs)
    done = 0
    for old, scores in recorded(partial, no_scores):
        if json.dumps(old) != json.dumps(list(islice(rest, len(old)))):  # unlike ==, it can compare NaN
            raise InputError(f"{partial.path}: differs from the input after pair {done}; use the same input")
        done += len(old)
        yield old, scores
    for chunk, scores in score(rest, done + 1):
        counts = {name: getattr(scores, name) for name in COUNTS}
        partial.append({"pairs": chunk, "values": scores.values.tolist(), "counts": counts})
        yield chunk, scores


def recorded(partial: PartialFile, no_scores: Scores) -> Iterator[Chunk]:
    """Yield the chunks of a partial file."""
    for record in partial.records():
        pairs = [tuple(pair) for pair in record["pairs"]]
        yield pairs, replace(no_scores, values=np.array(record["values"]), **record["counts"])
