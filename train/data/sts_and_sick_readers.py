"""Readers of sentence pairs with human ratings of their similarity: STS-B, SICK and the SemEval tasks.

A reader is a function that converts fetched files into rows (JSON objects). A row has the sentences `a` and
`b`, and the rating as `score`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from train.data.parse_fetched_file import Row, SourceFile


def stsb(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield the sentence pairs of the data set STS-B, from comma-separated values.

    A row has the sentences `a` and `b`, and the rating of their similarity as `score`.
    """
    for file in files:
        for a, b, score in file.csv():
            yield {"a": a, "b": b, "score": float(score)}


def sick(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield the sentence pairs of the data set SICK.

    A row has the sentences `a` and `b`, and the rating of their similarity as `score`. The label `nli` says
    whether `a` implies `b`, contradicts `b`, or neither.
    """
    for file in files:
        rows = file.columns()
        next(rows)  # the header
        for _, a, b, score, judgement in rows:
            yield {"a": a, "b": b, "score": float(score), "nli": judgement}


def semeval(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield the rated sentence pairs of the SemEval shared tasks on similarity.

    Pairs without a rating are left out. A row has the sentences `a` and `b`, the rating of their similarity
    as `score`, and the name of the file (without suffix) as `set`.
    """
    for file in files:
        for columns in file.columns():
            if columns[0]:
                a, b = columns[-2:]
                yield {"set": file.path.stem, "score": float(columns[0]), "a": a, "b": b}
