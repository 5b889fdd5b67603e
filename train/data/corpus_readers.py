"""Readers of texts about code; each row has the text under `text`."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterable, Iterator
from xml.etree import ElementTree

from train.data.parse_fetched_file import Row, SourceFile

# Characters of a docstring; the rest is cut.
_LONGEST = 400
# For a line feed, a space, a tab.
_MARKUP = re.compile("DCNL|DCSP|DCTB")
# The beginning of the sections after the description in a docstring.
_REST = re.compile(":param|:type|:return|@param|Args:|Parameters|Returns:|>>>")


def lines(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield each line of the files."""
    for file in files:
        for line in file.lines():
            yield {"text": line}


def lines_with_id(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield the texts of TL-CodeSum; a line is an id, a tab and the text."""
    for file in files:
        for line in file.lines():
            yield {"text": line.partition("\t")[2]}


def titles(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield the titles of questions on Stack Overflow in CodeNN, the third column."""
    for file in files:
        for columns in file.columns():
            yield {"text": columns[2]}


def comment_files(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield the comments of FunCom, one for each file: the text after "COM:", without `<s>` and `</s>`."""
    for file in files:
        _, _, comment = file.text.partition("COM:")
        yield {"text": comment.replace("<s>", "").replace("</s>", "")}


def docstrings(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield the descriptions of code-docstring-corpus; a line is one quoted docstring."""
    for file in files:
        for line in file.lines():
            text = _MARKUP.sub(" ", line).strip("'\" ")
            yield {"text": _REST.split(text, maxsplit=1)[0][:_LONGEST]}


def conala(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield the questions of CoNaLa and their versions rewritten by people, with the kind as `source`."""
    for file in files:
        for item in file.json():
            for name in ("intent", "rewritten_intent"):
                if item[name] is not None:
                    yield {"source": f"conala/{name}", "text": item[name]}


def cosqa(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield the search queries and the docstrings of CoSQA, with the kind as `source`."""
    for file in files:
        for item in file.json():
            yield {"source": "cosqa/query", "text": item["doc"]}
            yield {"source": "cosqa/docstring", "text": item["docstring_tokens"]}


def numbered_lists(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield the texts of JSON files such as `{"1": ["text", ...], "2": [...]}`."""
    for file in files:
        for texts in file.json().values():
            for text in texts:
                yield {"text": text}


def texts_of_workbook(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield each distinct text in the cells of an Excel workbook (.xlsx)."""
    for file in files:
        with zipfile.ZipFile(io.BytesIO(file.data)) as archive:
            strings = ElementTree.fromstring(archive.read("xl/sharedStrings.xml"))
        for string in strings:
            yield {"text": "".join(string.itertext())}
