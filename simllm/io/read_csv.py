"""Reading of CSV files, as spreadsheets, pandas and databases write them.

A file has a header and a row for each record. Commas, tabs, semicolons or spaces stand between the values.
Values in quotation marks may have line breaks. Excel's first line `sep=;`, a byte-order mark, line ends of
old Macs, empty lines, and unnamed last columns without values are accepted.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Collection, Iterator
from itertools import chain
from pathlib import Path

from simllm.errors import InputError
from simllm.io import read_lines

_SEPARATORS = ",\t; "
_EXCEL = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)  # tells Excel the separator of the file


def rows(file: Path, known: Collection[str]) -> tuple[list[str], Iterator[tuple[str, list[str]]]]:
    """Read a CSV file: the names of its columns, and an iterator over the places ("FILE, row 3") and values
    of rows.

    Row 1 is the first row below the header. `known` are names that columns may have: the separator is the one
    that gives the most known names. The iterator raises `InputError`, too.
    """
    lines = _lines(file)
    filled = (line for line in lines if line.strip())
    first = next(filled, "")
    if given := _EXCEL.fullmatch(first):
        separator, first = given[1], next(filled, "")
    else:
        headers = {sign: _names(first, sign) for sign in _SEPARATORS}
        # A space is the last choice, because column names may contain spaces.
        separator = max(
            headers,
            key=lambda sign: (len(headers[sign] & set(known)), len(headers[sign]) * (sign != " ")),
        )
    reader = csv.reader(chain([first], lines), delimiter=separator, skipinitialspace=True, strict=True)
    try:
        names = [name.strip() for name in next(reader, [])]
    except csv.Error as error:
        raise InputError(f"{file}, the header: not CSV ({_reason(error)})") from None
    for name, count in Counter(names).items():
        if name and count > 1:
            raise InputError(f"{file}: two columns are called {name}")
    while names and not names[-1]:  # Excel ends lines with separators where a column was emptied
        names.pop()
    if names.count("") > 1:
        second = names.index("", names.index("") + 1)
        raise InputError(f"{file}: column {second + 1} of the header has no name")
    return names, _rows(file, reader, len(names))


def _rows(file: Path, reader: Iterator[list[str]], columns: int) -> Iterator[tuple[str, list[str]]]:
    number = 0
    try:
        for values in reader:
            if not any(map(str.strip, values)):
                continue  # an empty line, or one of separators alone
            number += 1
            # As in the header: Excel ends lines with separators where a column was emptied.
            while len(values) > columns and not values[-1].strip():
                values.pop()
            if len(values) != columns:
                raise InputError(f"{file}, row {number}: {len(values)} values for {columns} columns")
            yield f"{file}, row {number}", values
    except csv.Error as error:
        raise InputError(f"{file}, row {number + 1}: not CSV ({_reason(error)})") from None


def _lines(file: Path) -> Iterator[str]:
    for number, line in read_lines.lines(file):
        if "\0" in line:
            raise InputError(f"{file}, line {number}: has a NUL byte; expected a CSV file in UTF-8")
        yield from (part + "\n" for part in line.split("\r"))  # old Macs end lines with it


def _names(line: str, separator: str) -> set[str]:
    reader = csv.reader([line], delimiter=separator, skipinitialspace=True)
    return {name.strip() for name in next(reader, [])}


def _reason(error: csv.Error) -> str:
    text = str(error)
    if text.startswith("field larger"):
        limit = f"{csv.field_size_limit():,}"
        return f"a value of more than {limit} characters; is a quotation mark not closed?"
    if text == "unexpected end of data":
        return "a quotation mark is not closed"
    return "text after a closing quotation mark" if " expected after " in text else text
