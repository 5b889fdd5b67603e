"""Readers of pairs with the same or another meaning (rows with `a`, `b`, `label`), and of abbreviations."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Iterable, Iterator
from itertools import islice

from train.data.source_file import Row, SourceFile


def labelled_pairs(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield two sentences and a label from the three columns below a header."""
    for file in files:
        for a, b, label in islice(file.columns(), 1, None):
            yield {"a": a, "b": b, "label": label}


def paws(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield the pairs of PAWS with the label `different` or `same`; '' and `` become plain quotes."""
    labels = {"0": "different", "1": "same"}
    for file in files:
        for columns in file.columns():
            if len(columns) == 4 and columns[3] in labels:
                a, b = (text.replace("``", '"').replace("''", '"') for text in columns[1:3])
                yield {"a": a, "b": b, "label": labels[columns[3]]}


def breaking_nli(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield three quarters of Breaking NLI, chosen by a hash of the first sentence."""
    for file in files:
        with zipfile.ZipFile(io.BytesIO(file.data)) as archive:
            content = archive.read("data/dataset.jsonl").decode("utf-8")
        for item in map(json.loads, content.splitlines()):
            a = item["sentence1"]
            if int(hashlib.md5(a.encode(), usedforsecurity=False).hexdigest(), 16) % 4:
                label = item["gold_label"]
                yield {"a": a, "b": item["sentence2"], "label": label, "kind": item["category"]}


def parallel_files(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield pairs from three parallel files with first sentences, second sentences and labels."""
    for a, b, label in zip(*(file.lines() for file in files), strict=True):
        yield {"a": a, "b": b, "label": label}


def negations(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield sentences and their negations from the two columns below a header."""
    for file in files:
        for a, b in islice(file.columns(), 1, None):
            yield {"a": a, "b": b, "label": "different"}


def antonyms(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield pairs of opposite words, one pair per line."""
    return _word_pairs(files, "opposite")


def synonyms(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield pairs of words with the same meaning, one pair per line."""
    return _word_pairs(files, "same")


def _word_pairs(files: Iterable[SourceFile], label: str) -> Iterator[Row]:
    """Yield the lines of two words as pairs with a label."""
    for file in files:
        for line in file.lines():
            words = line.split()
            if len(words) == 2:
                yield {"a": words[0], "b": words[1], "label": label}


def abbreviations(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield words with their abbreviations, and the degree of recommendation."""
    for file in files:
        for item in file.json():
            for short in item["abbrs"]:
                yield {"word": item["word"], "abbr": short["abbr"], "degree": short["degree"]}
