"""Haque et al.'s human study ("Semantic similarity metrics for evaluating source code summarization",
2022), as they publish it: `final_megafile.csv`, a line for each rating.

A line has the function, the rater, which of `text` and `text.1` is the reference (`source`),
their similarity from 1 to 4, and the authors' own values of many metrics.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from simllm.errors import InputError
from simllm.io import files

_NEEDED = ("function_id", "user_id", "similarity", "source", "text", "text.1")
_NOT_METRICS = {"", "Unnamed: 0", "accurate", "adequate", "concise", "bleu_cat", "function", *_NEEDED}


def rows(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each function's pair as a row of rated data, with the place of its first line.

    Placeholders such as `<UNK>` are left out of the candidates, as the authors' metrics do. Raises
    InputError that names file and line for what is not such a table.
    """
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    for where, line in _lines(file):
        try:
            texts = (
                (line["text"], line["text.1"])
                if line["source"] == "reference"
                else (line["text.1"], line["text"])
            )
            row = {
                "reference": texts[0],
                "candidate": " ".join(re.sub(r"<\S+>", " ", texts[1]).split()),
                "language": "java",
                "metrics": {k: float(v) for k, v in line.items() if k not in _NOT_METRICS and v},
            }
            rating = float(line["similarity"])
        except (TypeError, ValueError) as error:
            raise InputError(f"{where}: not a line of Haque et al.'s table ({error})") from None
        _, pair = found.setdefault(line["function_id"], (where, row | {"ratings": {}}))
        pair["ratings"][line["user_id"]] = rating
    yield from found.values()


def _lines(file: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the lines under the header, as column -> cell, with their places."""
    number = 0

    def texts() -> Iterator[str]:
        nonlocal number
        for number, line in files.lines(file):  # noqa: B007 (errors name it)
            yield line + "\n"  # a cell in quotation marks may go on in the next line

    table = csv.DictReader(texts())
    try:
        missing = [name for name in _NEEDED if name not in (table.fieldnames or ())]
        if missing:
            raise InputError(f"{file}: not Haque et al.'s table; it has no column {', '.join(missing)}")
        for line in table:
            yield f"{file}, line {number}", line
    except csv.Error as error:
        raise InputError(f"{file}, line {number}: not CSV ({error})") from None
