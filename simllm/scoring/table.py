"""The table that `simllm score` writes, and resuming it after an interruption."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from simllm.errors import InputError
from simllm.io import tables
from simllm.io.partial_file import PartialFile
from simllm.io.text_pairs import PairWithId, shown_id
from simllm.scoring.scores import CHANGED, COUNTS, EVEN, OUTPUTS, Scores

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
        outputs = {name: values.tolist() for name in OUTPUTS if (values := getattr(scores, name)) is not None}
        # Stored before the caller gets the chunk, so that a stop while the caller writes loses no work.
        partial.append({"pairs": chunk, "values": scores.values.tolist(), **outputs, "counts": counts})
        yield chunk, scores


def read_chunks(partial: PartialFile, no_scores: Scores) -> Iterator[Chunk]:
    """Read the scored chunks that an earlier run stored in a partial file."""
    for record in partial.records():
        # JSON turns tuples into lists.
        pairs = [tuple(pair) for pair in record["pairs"]]
        outputs: dict[str, Any] = {
            name: np.array(record[name]) for name in OUTPUTS if record.get(name) is not None
        }
        yield pairs, replace(no_scores, values=np.array(record["values"]), **outputs, **record["counts"])


class ScoreTable:
    """The table that `simllm score` writes: its columns, its rows (one for each pair) and its summary.

    The column "same" has the probability of the same meaning, if the metric can estimate it. The column
    "note" (only in the format "text") says "meaning may have changed". The scale "same" has neither column:
    its scores are the probability.

    Args:
        scale: One of `simllm.scoring.scores.SCALES`.
        format_: "text", "json" or "tsv".
        with_ids: Whether the table has a column with the pairs' ids.
        no_scores: The metric's scores of no pairs.
    """

    def __init__(self, scale: str, format_: str, with_ids: bool, no_scores: Scores) -> None:
        no_scores.on(scale)  # a wrong scale is refused now, not after an hour of scoring
        self.scale, self.format, self.with_ids = scale, format_, with_ids
        self.with_same = no_scores.same is not None and scale != "same"
        self.with_notes = self.with_same and format_ == "text"
        self.columns = [
            *(["id"] if with_ids else []),
            "score",
            *(["same"] if self.with_same else []),
            "candidate",
            "reference",
            *(["note"] if self.with_notes else []),
        ]

    def rows(self, pairs: Sequence[tuple[Any, ...]], scores: Scores) -> tables.Rows:
        """Return n rows of cells for n pairs: (candidate, reference), or (candidate, reference, id)."""
        columns = [scores.on(self.scale)]
        if self.with_same:
            columns.append(scores.on("same"))
        notes = [[CHANGED if changed else ""] if self.with_notes else [] for changed in scores.changed]
        ids = [shown_id(PairWithId(*pair), self.format) if self.with_ids else [] for pair in pairs]
        return [
            [*own_id, *numbers, *pair[:2], *note]
            for own_id, pair, note, *numbers in zip(
                ids, pairs, notes, *(c.tolist() for c in columns), strict=True
            )
        ]

    def summary(self, scores: Scores) -> dict[str, Any]:
        """Return the summary of all pairs in the table as a JSON object.

        "mean" is on the table's scale, and "changed" counts pairs whose texts are similar but probably differ
        in meaning. Values that would say nothing are left out: the scale "raw", no warnings, no column
        "same".
        """
        same = {"changed": int(scores.changed.sum())} if self.with_same else {}
        return {
            "pairs": len(scores.values),
            "mean": float(scores.on(self.scale).mean()),
            **({"scale": self.scale} if self.scale != "raw" else {}),
            **({"prior": scores.prior} if scores.prior != EVEN else {}),
            **same,
            "empty": scores.empty,
            "truncated": scores.truncated,
            "deduplicated": scores.deduplicated,
            "signature": scores.signature,
            **({"warnings": list(scores.warnings)} if scores.warnings else {}),
        }
