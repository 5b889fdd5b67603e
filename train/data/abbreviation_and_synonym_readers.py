"""Readers of word lists: abbreviations, synonyms (equal meanings) and antonyms (opposite meanings)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from train.data.parse_fetched_file import Row, SourceFile


def antonyms(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield word pairs with opposite meanings, with the label "opposite"."""
    return _word_pairs(files, "opposite")


def synonyms(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield word pairs with the same meaning, with the label "same"."""
    return _word_pairs(files, "same")


def _word_pairs(files: Iterable[SourceFile], label: str) -> Iterator[Row]:
    """Yield a row with `a`, `b` and `label` for each line with two words."""
    for file in files:
        for line in file.lines():
            words = line.split()
            if len(words) == 2:
                yield {"a": words[0], "b": words[1], "label": label}


def abbreviations(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield rows such as `{"word": "message", "abbr": "msg", "degree": ...}`.

    `degree` says how much the data set recommends the abbreviation, as in "recommended".
    """
    for file in files:
        for item in file.json():
            for short in item["abbrs"]:
                yield {"word": item["word"], "abbr": short["abbr"], "degree": short["degree"]}
