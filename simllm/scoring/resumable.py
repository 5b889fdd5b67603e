"""Resumable scoring: finished chunks are kept in a partial file, which a later run reads."""

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
    """Score pairs chunk by chunk, and skip the chunks that are in the partial file.

    New chunks are appended to the partial file. The scores are bit-identical to those of a run that
    was not stopped.

    Args:
        score: `SimLLM.stream`.
        pairs: All pairs, from the first, as tuples of JSON values.
        partial: The partial file; its settings contain the signature of the metric.
        no_scores: The scores of zero pairs; each chunk has their signature and calibration.

    Yields:
        Pairs and their scores, in input order.

    Raises:
        InputError: The pairs in the partial file differ from `pairs`, or it cannot be written.
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
    """Yield the pairs and scores of each chunk in a partial file."""
    for record in partial.records():
        pairs = [tuple(pair) for pair in record["pairs"]]
        same = np.array(record["same"]) if record.get("same") is not None else None
        yield pairs, replace(no_scores, values=np.array(record["values"]), same=same, **record["counts"])
