"""Readers of sentence pairs with human ratings of their similarity.

A reader converts fetched files into rows (JSON objects) with the sentences `a` and `b`, and a `score`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from train.data.source_file import Row, SourceFile


def stsb(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield the pairs of the data set STS-B, from comma-separated values."""
    for file in files:
        for a, b, score in file.csv():
            yield {"a": a, "b": b, "score": float(score)}


def sick(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield the pairs of the data set SICK.

    The value of `nli` in a row is the label that says whether `a` implies `b`.
    """
    for file in files:
        rows = file.columns()
        next(rows)  # the header
        for _, a, b, score, judgement in rows:
            yield {"a": a, "b": b, "score": float(score), "nli": judgement}


def semeval(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield the sentence pairs of the shared tasks SemEval, without pairs that have no score.

    A row also has the name of its file, without suffix, under `set`.
    """
    for file in files:
        for columns in file.columns():
            if columns[0]:
                a, b = columns[-2:]
                yield {"set": file.path.stem, "score": float(columns[0]), "a": a, "b": b}
