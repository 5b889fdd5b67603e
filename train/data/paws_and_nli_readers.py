"""Readers of sentence pairs with a `label` by meaning, such as PAWS and natural language inference (NLI).

NLI says whether one sentence implies the other, contradicts it, or neither. The sentences are under `a` and
`b`.
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
    """Yield the pairs of lines with two texts and a label, separated by tabs, below a header."""
    for file in files:
        for a, b, label in islice(file.columns(), 1, None):
            yield {"a": a, "b": b, "label": label}


def paws(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield the pairs of PAWS, with the label "same" or "different"."""
    labels = {"0": "different", "1": "same"}
    for file in files:
        for columns in file.columns():
            if len(columns) == 4 and columns[3] in labels:
                # The tokenizer of the data set has turned quotation marks into backticks and apostrophes.
                a, b = (text.replace("``", '"').replace("''", '"') for text in columns[1:3])
                yield {"a": a, "b": b, "label": labels[columns[3]]}


def breaking_nli(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield a fixed selection of about three quarters of the pairs in Breaking NLI."""
    for file in files:
        with zipfile.ZipFile(io.BytesIO(file.data)) as archive:
            content = archive.read("data/dataset.jsonl").decode("utf-8")
        for item in map(json.loads, content.splitlines()):
            a = item["sentence1"]
            # A hash of the first text decides, so that its pairs are yielded or left out together.
            if int(hashlib.md5(a.encode(), usedforsecurity=False).hexdigest(), 16) % 4:
                label = item["gold_label"]
                yield {"a": a, "b": item["sentence2"], "label": label, "kind": item["category"]}


def parallel_files(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield the pairs of three files, of which line i has the first text, the second text, and the label."""
    for a, b, label in zip(*(file.lines() for file in files), strict=True):
        yield {"a": a, "b": b, "label": label}


def negations(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield a sentence and its negation, separated by a tab below a header, with the label "different"."""
    for file in files:
        for a, b in islice(file.columns(), 1, None):
            yield {"a": a, "b": b, "label": "different"}
