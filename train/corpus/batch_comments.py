"""Extraction of the comments of one batch, in one process."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from simllm.code.languages.language import Function
from simllm.code.languages.language_registry import LANGUAGE_OF_SUFFIX
from simllm.errors import InputError
from simllm.optional_packages import missing_package
from train.corpus.comment_filters import clean_texts
from train.corpus.decontaminate import ExcludedTexts
from train.corpus.extract import extract, make_comment
from train.corpus.function_comment import Comment
from train.corpus.part_file import PartWriter
from train.corpus.skip_counts import Tallies, Tally
from train.corpus.sources import Docstring, Item


def make_part(data: bytes, file: Path, excluded: ExcludedTexts) -> None:
    """Write the part of a batch; `data` is the pickled pair of the source's name and the batch."""
    # Safe: pickled by the same run, never read from disk.
    source, batch = pickle.loads(data)
    tallies, part = Tallies(), PartWriter()
    for item in batch:
        for comment, single in _comments(item, tallies):
            row = clean_texts(comment, excluded, tallies.texts)
            if row.texts:
                part.add(comment, row, single)
    part.write(file, {"source": source, "found": tallies.facts()})


def _comments(item: Item, tallies: Tallies) -> Iterator[tuple[Comment, bool]]:
    """Yield the comments of an item, each with whether its function's name is unique in the source file."""
    if isinstance(item, Comment):
        yield item, False
        return
    if isinstance(item, Docstring):
        yield from ((comment, False) for comment in _from_docstring(item, tallies.comments))
        return
    tallies.files.counts["read"] += 1
    tallies.files.counts["bytes"] += len(item.data)
    comments = []
    try:
        for comment in extract(
            item.data, item.language, tallies.comments.counts, tallies.comments.add_example
        ):
            comments.append(comment)
    except ImportError as error:
        raise InputError(f"{item.language}: {missing_package(error.name, 'code')}") from None
    # An unusual file may break a parser; the other files are read.
    except Exception as error:
        where = f"{item.repository}: {item.path}"
        tallies.files.add("unreadable code", f"{where}: {type(error).__name__}: {error}")
    names = Counter(comment.function for comment in comments)
    for comment in comments:
        placed = replace(comment, path=item.path, repository=item.repository, licence=item.licence)
        yield placed, bool(comment.function) and names[comment.function] == 1


def _from_docstring(item: Docstring, tally: Tally) -> Iterator[Comment]:
    """Yield the comment, unless a filter rejects it or its language is unknown."""
    if item.language not in LANGUAGE_OF_SUFFIX.values():
        tally.add(f"of {item.language or 'no language'}", item.text)
        return
    function = Function(item.function, item.text, item.text, head="")
    if comment := make_comment(function, item.language, tally.add):
        yield replace(comment, path=item.path, repository=item.repository)
