"""Reading of JSON-lines files, which have one JSON object per line, and of the values in these objects."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from simllm.errors import InputError
from simllm.io.read_lines import lines
from simllm.text_cleaning import encodable


def objects(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Read a JSON-lines file, which has one JSON object per line.

    Args:
        file: The file. It is decompressed if its name ends in `.gz`. The name `-` stands for standard
            input.

    Yields:
        The place of a line for error messages ("FILE, line 3"), and its JSON object.

    Raises:
        InputError: The file cannot be read, or a line is not a JSON object.
    """
    for number, line in lines(file):
        where = f"{file}, line {number}"
        yield where, parsed(line, where)


def parsed(line: str, where: str) -> dict[str, Any]:
    """Parse a line of a JSON-lines file into a JSON object.

    Args:
        line: The line.
        where: The place of the line for error messages, such as "FILE, line 3".

    Returns:
        The object. U+FFFD replaces characters that UTF-8 cannot encode (lone surrogates).

    Raises:
        InputError: The line is not a JSON object.
    """
    try:
        row = json.loads(line)
        if "\\u" in line:
            row = _encodable(row)
    except ValueError as error:
        if not line.strip():
            raise InputError(f"{where}: empty; expected a JSON object") from None
        raise InputError(f"{where}: not JSON ({error})") from None
    except RecursionError:
        raise InputError(f"{where}: JSON that is nested too deeply") from None
    if not isinstance(row, dict):
        raise InputError(f"{where}: expected a JSON object")
    return row


def _encodable(value: Any) -> Any:
    """Replace characters that UTF-8 cannot encode (lone surrogates) by U+FFFD in all texts of JSON data."""
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, list):
        return [_encodable(part) for part in value]
    if isinstance(value, dict):
        return {encodable(key): _encodable(part) for key, part in value.items()}
    return value


def value_under(row: dict[str, Any], field: str, where: str, kind: str = "a value") -> Any:
    """Return the value of a key in a JSON object.

    Args:
        row: The JSON object.
        field: The key.
        where: The place of the object for error messages, such as "FILE, line 3".
        kind: The expected kind of value, such as "a text". It is only used in the error message; the value
            is not checked.

    Raises:
        InputError: The object lacks the key.
    """
    if field not in row:
        names = ", ".join(islice(row, 20)) or "nothing"
        raise InputError(f'{where}: expected {kind} under "{field}"; it has {names}')
    return row[field]


def text_under(row: dict[str, Any], field: str, where: str) -> str:
    """Return the text under a key in a JSON object.

    Args:
        row: The JSON object.
        field: The key.
        where: The place of the object for error messages, such as "FILE, line 3".

    Raises:
        InputError: The object lacks the key, or its value is not a text.
    """
    value = value_under(row, field, where, "a text")
    if not isinstance(value, str):
        actual = type(value).__name__ if isinstance(value, list | dict) else json.dumps(value)[:40]
        raise InputError(f'{where}: expected a text under "{field}", not {actual}')
    return value
