"""Extraction of the comments from one batch of source files, in one process.

The cleaned comments are written to a file, which is called a part of the corpus. A corpus is made by merging
its parts.
"""

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
    """Extract the comments from a batch, clean their texts, and write them as a part of the corpus.

    A batch is a list of items. An item is a source file, a docstring (raw documentation without code) or a
    comment that is already extracted. A part is the file with the comments of one batch.

    Args:
        data: Pickled pair: where the batch was read from (such as a folder or `hf:NAME` for a data set), and
            the batch.
        file: The file to write.
        excluded: Evaluation texts to leave out.
    """
    source, batch = pickle.loads(data)  # safe: pickled by the same run, never read from disk
    tallies, part = Tallies(), PartWriter()
    for item in batch:
        for comment, single in _comments(item, tallies):
            row = clean_texts(comment, excluded, tallies.texts)
            if row.texts:
                part.add(comment, row, single)
    part.write(file, {"source": source, "found": tallies.facts()})


def _comments(item: Item, tallies: Tallies) -> Iterator[tuple[Comment, bool]]:
    """Extract the comments from one item of a batch, and check whether their functions have unique names.

    A name that is unique in a source file identifies the function in other versions of the file.

    Args:
        item: A source file, a docstring (raw documentation without code), or a comment that is already
            extracted.
        tallies: Counters of files and comments that are read or left out; they are updated.

    Yields:
        A comment, and a bool. The bool is true if the commented function has a name, and no other commented
        function in the source file has this name. If the item is not a source file, the bool is false.
    """
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
    except Exception as error:  # an unusual file may break a parser; the other files are read
        where = f"{item.repository}: {item.path}"
        tallies.files.add("unreadable code", f"{where}: {type(error).__name__}: {error}")
    names = Counter(comment.function for comment in comments)
    for comment in comments:
        placed = replace(comment, path=item.path, repository=item.repository, licence=item.licence)
        yield placed, bool(comment.function) and names[comment.function] == 1


def _from_docstring(item: Docstring, tally: Tally) -> Iterator[Comment]:
    """Make a comment from a docstring whose code is not available, unless a filter rejects the docstring.

    Args:
        item: The docstring.
        tally: Counter of rejected comments; it is updated.

    Yields:
        The comment. Nothing is yielded if a filter rejects the docstring, or its language is unknown.
    """
    if item.language not in LANGUAGE_OF_SUFFIX.values():
        tally.add(f"of {item.language or 'no language'}", item.text)
        return
    function = Function(item.function, item.text, item.text, head="")
    if comment := make_comment(function, item.language, tally.add):
        yield replace(comment, path=item.path, repository=item.repository)
