"""Readers of texts about code.

A reader is a function that converts fetched files into rows (JSON objects), here with the key `text`.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterable, Iterator
from xml.etree import ElementTree

from train.data.parse_fetched_file import Row, SourceFile

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
    """Yield a row `{"text": text}` for each line of the data set TL-CodeSum.

    A line has an id, a tab and the text. The id is left out.
    """
    for file in files:
        for line in file.lines():
            yield {"text": line.partition("\t")[2]}


def titles(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield a row `{"text": title}` for each line of the data set CodeNN.

    A line describes a question on Stack Overflow. Its columns are separated by tabs, and the third column is
    the question's title.
    """
    for file in files:
        for columns in file.columns():
            yield {"text": columns[2]}


def comment_files(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield a row `{"text": comment}` for each file of the data set FunCom.

    The comment of a file is the text after "COM:", without the marks `<s>` and `</s>`.
    """
    for file in files:
        _, _, comment = file.text.partition("COM:")
        yield {"text": comment.replace("<s>", "").replace("</s>", "")}


def docstrings(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield a row `{"text": description}` for each docstring of the data set code-docstring-corpus.

    Each line of the files is one quoted docstring. Its description is the text before its parameters.
    """
    for file in files:
        for line in file.lines():
            text = _MARKUP.sub(" ", line).strip("'\" ")
            yield {"text": _REST.split(text, maxsplit=1)[0][:_LONGEST]}


def conala(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield the questions about code in the data set CoNaLa, and their versions rewritten by people.

    A question and its rewritten version, if any, are two rows with the keys `source` and `text`. The `source`
    is "conala/intent" for the question, and "conala/rewritten_intent" for the rewritten version.
    """
    for file in files:
        for item in file.json():
            for name in ("intent", "rewritten_intent"):
                if item[name] is not None:
                    yield {"source": f"conala/{name}", "text": item[name]}


def cosqa(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield the search queries and the docstrings of the data set CoSQA.

    Each query or docstring is one row, under the key `text`. The `source` of the row is "cosqa/query" or
    "cosqa/docstring".
    """
    for file in files:
        for item in file.json():
            yield {"source": "cosqa/query", "text": item["doc"]}
            yield {"source": "cosqa/docstring", "text": item["docstring_tokens"]}


def numbered_lists(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield a row `{"text": text}` for each text in JSON files of numbered lists of texts.

    A file has one JSON object, such as `{"1": ["text", ...], "2": [...]}`. The numbers are left out. The
    texts are, for example, the reference summaries of a data set.
    """
    for file in files:
        for texts in file.json().values():
            for text in texts:
                yield {"text": text}


def texts_of_workbook(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield a row `{"text": text}` for each distinct text in the cells of an Excel workbook (.xlsx)."""
    for file in files:
        with zipfile.ZipFile(io.BytesIO(file.data)) as archive:
            strings = ElementTree.fromstring(archive.read("xl/sharedStrings.xml"))
        for string in strings:
            yield {"text": "".join(string.itertext())}
