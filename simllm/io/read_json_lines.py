"""Reading of JSON-lines files, which have one JSON object per line, and of the values in these objects."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from simllm.errors import InputError
from simllm.io.read_lines import lines
from simllm.text_cleaning import encodable


def objects(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the place of each line and its JSON object; a file named `*.gz` is decompressed."""
    for number, line in lines(file):
        where = f"{file}, line {number}"
        yield where, parsed(line, where)


def parsed(line: str, where: str, expected: str = "one object on each line") -> dict[str, Any]:
    """Parse a line into a JSON object, in which no key may stand twice.

    U+FFFD replaces characters that UTF-8 cannot encode (lone surrogates). `expected` is for the error
    messages.
    """
    try:
        row = json.loads(line, object_pairs_hook=partial(_object, where))
        # Only an escape can give a lone surrogate: the line itself was decoded from UTF-8.
        if "\\u" in line:
            row = _encodable(row)
    except InputError:
        raise
    except ValueError as error:
        if not line.strip():
            raise InputError(f"{where}: empty; expected a JSON object") from None
        if line.lstrip().startswith("["):
            raise InputError(f"{where}: is a JSON array; expected {expected}") from None
        raise InputError(f"{where}: not JSON ({_reason(error)}); expected {expected}") from None
    except RecursionError:
        raise InputError(f"{where}: JSON that is nested too deeply") from None
    if isinstance(row, list):
        raise InputError(f"{where}: is a JSON array; expected {expected}")
    if not isinstance(row, dict):
        raise InputError(f"{where}: expected a JSON object")
    return row


def _object(where: str, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise InputError(f'{where}: the key "{twice}" stands twice in an object')
    return values


def _reason(error: ValueError) -> str:
    if "int_max_str_digits" in str(error):  # Python's advice is of no use to a user of the command
        return "a number has more than 4,300 digits"
    if isinstance(error, json.JSONDecodeError):
        line = f"line {error.lineno}, " if error.lineno > 1 else ""
        return f"{error.msg}: {line}column {error.colno}"
    return str(error)


def _encodable(value: Any) -> Any:
    """Replace characters that UTF-8 cannot encode (lone surrogates) by U+FFFD."""
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, list):
        return [_encodable(part) for part in value]
    if isinstance(value, dict):
        return {encodable(key): _encodable(part) for key, part in value.items()}
    return value


def value_under(row: dict[str, Any], field: str, where: str, kind: str = "a value") -> Any:
    """Return the value of a key that must be there; `kind`, such as "a text", is for the message."""
    if field not in row:
        names = ", ".join(islice(row, 20)) or "nothing"
        raise InputError(f'{where}: expected {kind} under "{field}"; it has {names}')
    return row[field]


def text_under(row: dict[str, Any], field: str, where: str) -> str:
    """Return the text under a key that must be there."""
    value = value_under(row, field, where, "a text")
    if not isinstance(value, str):
        actual = type(value).__name__ if isinstance(value, list | dict) else json.dumps(value)[:40]
        raise InputError(f'{where}: expected a text under "{field}", not {actual}')
    return value
