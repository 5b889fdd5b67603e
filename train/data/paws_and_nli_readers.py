"""Readers of sentence pairs that are labelled by meaning, such as PAWS and natural language inference (NLI).

NLI says whether one sentence implies the other, contradicts it, or neither. A reader is a function that
converts fetched files into rows (JSON objects). A row has the texts `a` and `b`, and a `label` such as
"same", "different" or "entailment".
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Iterable, Iterator
from itertools import islice

from train.data.parse_fetched_file import Row, SourceFile


def labelled_pairs(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield a row with `a`, `b` and `label` for each line of the files, except for the header of each file.

    A line has two texts and their label, separated by tabs.
    """
    for file in files:
        for a, b, label in islice(file.columns(), 1, None):
            yield {"a": a, "b": b, "label": label}


def paws(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield the sentence pairs of the data set PAWS.

    A row has the sentences `a` and `b`, and the label "same" or "different" for their meanings. Quotation
    marks written as two backticks or two apostrophes become `"`.
    """
    labels = {"0": "different", "1": "same"}
    for file in files:
        for columns in file.columns():
            if len(columns) == 4 and columns[3] in labels:
                a, b = (text.replace("``", '"').replace("''", '"') for text in columns[1:3])
                yield {"a": a, "b": b, "label": labels[columns[3]]}


def breaking_nli(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield a fixed selection of about three quarters of the pairs in the data set Breaking NLI.

    A hash of a pair's first text decides whether the pair is yielded. Therefore, pairs with the same first
    text are yielded or left out together. A row has the texts `a` and `b`, their `label`, and the data set's
    category of the pair (`kind`).
    """
    for file in files:
        with zipfile.ZipFile(io.BytesIO(file.data)) as archive:
            content = archive.read("data/dataset.jsonl").decode("utf-8")
        for item in map(json.loads, content.splitlines()):
            a = item["sentence1"]
            if int(hashlib.md5(a.encode(), usedforsecurity=False).hexdigest(), 16) % 4:
                label = item["gold_label"]
                yield {"a": a, "b": item["sentence2"], "label": label, "kind": item["category"]}


def parallel_files(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield labelled text pairs from three files: the first texts, the second texts, and the labels.

    Line i of each file belongs to pair i, which becomes a row with `a`, `b` and `label`.
    """
    for a, b, label in zip(*(file.lines() for file in files), strict=True):
        yield {"a": a, "b": b, "label": label}


def negations(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield pairs of a sentence and its negation, with the label "different".

    Each line of the files has a sentence, a tab and its negation. The first line of a file is a header.
    """
    for file in files:
        for a, b in islice(file.columns(), 1, None):
            yield {"a": a, "b": b, "label": "different"}
