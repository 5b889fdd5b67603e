"""Readers of word lists: abbreviations, synonyms (equal meanings) and antonyms (opposite meanings).

A reader is a function that converts fetched files into rows (JSON objects).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from train.data.parse_fetched_file import Row, SourceFile


def antonyms(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield pairs of words with opposite meanings, as rows with `a`, `b` and the label "opposite".

    A line with two words is a pair; other lines are skipped.
    """
    return _word_pairs(files, "opposite")


def synonyms(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield pairs of words with the same meaning, as rows with `a`, `b` and the label "same".

    A line with two words is a pair; other lines are skipped.
    """
    return _word_pairs(files, "same")


def _word_pairs(files: Iterable[SourceFile], label: str) -> Iterator[Row]:
    """Yield pairs of words as rows, each with the words `a` and `b` and a `label`.

    A line with two words is a pair. Other lines are skipped.

    Args:
        files: The files with the pairs.
        label: How the two words of every pair are related: "same" or "opposite" (in meaning).
    """
    for file in files:
        for line in file.lines():
            words = line.split()
            if len(words) == 2:
                yield {"a": words[0], "b": words[1], "label": label}


def abbreviations(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield abbreviations of words, as rows such as `{"word": "message", "abbr": "msg", "degree": ...}`.

    The value of `degree` is copied from the data set. It says how much the data set recommends the
    abbreviation, as in "recommended".
    """
    for file in files:
        for item in file.json():
            for short in item["abbrs"]:
                yield {"word": item["word"], "abbr": short["abbr"], "degree": short["degree"]}
