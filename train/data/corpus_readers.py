"""Readers of texts about code.

A reader is a function that converts fetched files into rows (JSON objects), here with the key `text`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from train.data.source_file import Row, SourceFile

_LONGEST = 400  # characters of a docstring; the rest is cut
_MARKUP = re.compile("DCNL|DCSP|DCTB")  # for a line feed, a space, a tab
# The beginning of the sections after the description in a docstring.
_REST = re.compile(":param|:type|:return|@param|Args:|Parameters|Returns:|>>>")


def lines(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield a row `{"text": line}` for each line of the files."""
    for file in files:
        for line in file.lines():
            yield {"text": line}


def lines_with_id(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield a row with `text` for each line of the data set TL-CodeSum: an id, a tab and the text."""
    for file in files:
        for line in file.lines():
            yield {"text": line.partition("\t")[2]}


def titles(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield a row with `text` for each line of the data set CodeNN: the title in its third column."""
    for file in files:
        for columns in file.columns():
            yield {"text": columns[2]}


def comment_files(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield a row with `text` for each file of the data set FunCom: the comment after "COM:"."""
    for file in files:
        _, _, comment = file.text.partition("COM:")
        yield {"text": comment.replace("<s>", "").replace("</s>", "")}


def docstrings(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield a row with `text` for each docstring: the description before its parameters.

    The files are from the data set code-docstring-corpus, with one quoted docstring per line.
    """
    for file in files:
        for line in file.lines():
            text = _MARKUP.sub(" ", line).strip("'\" ")
            yield {"text": _REST.split(text, maxsplit=1)[0][:_LONGEST]}


def conala(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield rows with the questions about code in the data set CoNaLa: the original and the rewritten ones.

    The `source` of a row is "conala/intent" for an original question, and "conala/rewritten_intent" for one
    that others have rewritten.
    """
    for file in files:
        for item in file.json():
            for name in ("intent", "rewritten_intent"):
                if item[name] is not None:
                    yield {"source": f"conala/{name}", "text": item[name]}


def cosqa(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield rows with the search queries and the docstrings of the data set CoSQA.

    The `source` of a row is "cosqa/query" or "cosqa/docstring".
    """
    for file in files:
        for item in file.json():
            yield {"source": "cosqa/query", "text": item["doc"]}
            yield {"source": "cosqa/docstring", "text": item["docstring_tokens"]}


def numbered_lists(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield a row with `text` for each text in JSON files with an object like `{"1": ["text", …], …}`."""
    for file in files:
        for texts in file.json().values():
            for text in texts:
                yield {"text": text}
