"""Readers of sentence pairs `a` and `b` with a human rating of their similarity, `score`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from train.data.parse_fetched_file import Row, SourceFile


def stsb(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield the pairs of STS-B."""
    for file in files:
        for a, b, score in file.csv():
            yield {"a": a, "b": b, "score": float(score)}


def sick(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield the pairs of SICK; `nli` says whether `a` implies `b`, contradicts it, or neither."""
    for file in files:
        rows = file.columns()
        next(rows)  # the header
        for _, a, b, score, judgement in rows:
            yield {"a": a, "b": b, "score": float(score), "nli": judgement}


def semeval(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield the rated pairs of the SemEval tasks on similarity, with the name of the file as `set`."""
    for file in files:
        for columns in file.columns():
            # Pairs without a rating have an empty first column.
            if columns[0]:
                a, b = columns[-2:]
                yield {"set": file.path.stem, "score": float(columns[0]), "a": a, "b": b}
