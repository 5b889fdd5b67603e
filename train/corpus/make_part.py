"""Makes a part of a corpus from a batch of files and comments: comments, clean texts, a file."""

from __future__ import annotations

import pickle
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from simllm.code.languages import LANGUAGES, Function
from simllm.errors import InputError
from simllm.text import LONGEST, clean
from train.corpus.comment import Comment
from train.corpus.decontaminate import ExcludedTexts
from train.corpus.extract import document, extract
from train.corpus.part_file import Row, Writer
from train.corpus.sources import Docstring, Item
from train.corpus.tally import Tallies, Tally

_TWO_WORDS = re.compile("[^a-z]*+[a-z][^ ]*+ .*[a-z]")


def make(data: bytes, file: Path, excluded: ExcludedTexts) -> None:
    """Make a part of a pickled (source, batch)."""
    source, batch = pickle.loads(data)  # of this very run: never from the disk
    found, part = Tallies(), Writer()
    for item in batch:
        for comment, single in _comments(item, found):
            row = _cleaned(comment, excluded, found.texts)
            if row.texts:
                part.add(comment, row, single)
    part.write(file, {"source": source, "found": found.facts()})


def _comments(item: Item, found: Tallies) -> Iterator[tuple[Comment, bool]]:
    """The comments of an item, and whether each is of the only function of that name in its file."""
    if isinstance(item, Comment):
        yield item, False
        return
    if isinstance(item, Docstring):
        yield from ((comment, False) for comment in _of_docstring(item, found.comments))
        return
    found.files.counts["read"] += 1
    found.files.counts["bytes"] += len(item.data)
    comments = []
    try:
        for comment in extract(item.data, item.language, found.comments.counts, found.comments.show):
            comments.append(comment)
    except ImportError as error:
        raise InputError(f"reading {item.language} needs {error.name}: pip install '.[code]'") from None
    except Exception as error:  # whatever a stranger's file does to a parser, the others are read
        where = f"{item.repository}: {item.path}"
        found.files.add("unreadable code", f"{where}: {type(error).__name__}: {error}")
    names = Counter(comment.function for comment in comments)
    for comment in comments:
        placed = replace(comment, path=item.path, repository=item.repository, licence=item.licence)
        yield placed, bool(comment.function) and names[comment.function] == 1


def _of_docstring(item: Docstring, tally: Tally) -> Iterator[Comment]:
    if item.language not in LANGUAGES.values():
        tally.add(f"of {item.language or 'no language'}", item.text)
        return
    function = Function(item.function, item.text, item.text, head="")
    if comment := document(function, item.language, tally.add):
        yield replace(comment, path=item.path, repository=item.repository)


def _cleaned(comment: Comment, excluded: ExcludedTexts, tally: Tally) -> Row:
    rest = comment.description.removeprefix(comment.summary).lstrip(" :")
    paragraphs = [text for text in re.split(r"\n\s*\n", rest) if text.strip()]
    summary, *others = (_kept(text, excluded, tally) for text in (comment.summary, *paragraphs))
    return Row(vars(comment), summary, [text for text in others if text])


def _kept(raw: str, excluded: ExcludedTexts, tally: Tally) -> str:
    """The cleaned text, empty if it is to be left out."""
    tally.counts["read"] += 1
    if len(raw) > LONGEST:
        tally.add("too long", raw)
        return ""
    text = clean(raw)
    if not _TWO_WORDS.match(text):
        tally.add("fewer than two words", raw)
    elif text in excluded:
        tally.add("in a rated set", text)
    else:
        return text
    return ""
