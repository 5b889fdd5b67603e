"""Reading of text lines, JSON objects and CSV rows: plain files, compressed files (`.gz`), standard input.

At the end, dataclasses are built from the content of JSON or YAML files. This is strict: an unknown key, a
missing required key and a value of a wrong type are errors.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import gzip
import json
import math
import os
import re
import reprlib
import sys
import tomllib
import types
import typing
import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from simllm.errors import InputError
from simllm.text_cleaning import encodable

LONGEST_LINE = 1 << 26  # bytes; a file without line ends must not fill the memory
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def read_lines(file: Path) -> Iterator[tuple[int, str]]:
    r"""Yield the number, from 1, and the text of each line of a UTF-8 file.

    Line ends (`\n` or `\r\n`) and a byte-order mark are removed. A line may have 64 MiB.
    """
    number = 0
    try:
        with _opened(file) as data:
            for number, line in enumerate(iter(lambda: data.readline(LONGEST_LINE + 1), b""), 1):
                if len(line) > LONGEST_LINE:
                    longest = f"{LONGEST_LINE >> 20} MiB"
                    raise InputError(
                        f"{file}, line {number}: has more than {longest}; expected one text per line"
                    )
                if number == 1 and (line.startswith(_UTF_16) or b"\0" in line):
                    raise InputError(f"{file}: is UTF-16 or binary; expected text in UTF-8{_remedy(file)}")
                # Only at the start of the file is U+FEFF a byte-order mark.
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
                yield number, text.removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        reason = f"not UTF-8 ({error.reason})"
        raise InputError(f"{file}, line {number}: {reason}{_remedy(file)}") from None
    except EOFError:
        raise InputError(f"{file}: ends in the middle, after line {number}") from None
    except zlib.error as error:
        raise InputError(f"{file}: is damaged after line {number} ({error})") from None
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror or error})") from None


def _remedy(file: Path) -> str:
    """Return what helps against a wrong encoding: Excel's ordinary "CSV" is not UTF-8."""
    return '; save it as "CSV UTF-8"' if is_table(file) else ""


def whole_text(file: Path) -> str:
    """Read a whole UTF-8 text file, without a byte-order mark; a device without an end is an error, too.

    Raises:
        InputError: The file cannot be read or decoded, or has more than 64 MiB.
    """
    try:
        with file.open("rb") as data:
            content = data.read(LONGEST_LINE + 1)
        if len(content) > LONGEST_LINE:
            raise InputError(f"{file}: has more than {LONGEST_LINE >> 20} MiB")
        return content.decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: not UTF-8 ({error.reason})") from None


def is_stdin(file: Path) -> bool:
    """Return whether a file name is `-`, which stands for standard input."""
    return str(file) == "-"


def _opened(file: Path) -> contextlib.AbstractContextManager[BinaryIO]:
    if is_stdin(file):
        return contextlib.nullcontext(sys.stdin.buffer)
    if file.suffix.lower() == ".gz":
        return gzip.open(file)  # type: ignore[return-value]  # a GzipFile reads like a BinaryIO
    return file.open("rb")


def objects(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the place of each line and its JSON object; a file named `*.gz` is decompressed."""
    for number, line in read_lines(file):
        where = f"{file}, line {number}"
        yield where, parsed(line, where)


def is_table(file: Path) -> bool:
    """Return whether a file is CSV or TSV by its name, which may end in `.gz`."""
    return suffix(file) in (".csv", ".tsv")


def suffix(file: Path) -> str:
    """Return the suffix of a file in lower case, without the `.gz` of a compressed file."""
    return Path(file.name.lower().removesuffix(".gz")).suffix


ROWS = "a JSON object per line, or a table with a header and rows (.csv, .tsv)"  # what `rows` reads


def rows(file: Path, known: Collection[str] = ()) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the place of each row of a CSV, TSV or JSON-lines file, and its values by the names of columns.

    In CSV and TSV, all values are texts; `known` are names that columns may have.
    """
    if not is_table(file):
        try:
            yield from objects(file)
        except InputError as error:
            if suffix(file) in ("", ".jsonl", ".json") or not file.is_file():
                raise
            raise InputError(f"{error}; the name of a table ends in .csv, .tsv or .jsonl") from None
        return
    names, found = read_csv(file, known)
    yield from ((where, dict(zip(names, values, strict=True))) for where, values in found)


def parsed(line: str, where: str, expected: str = "one object on each line") -> dict[str, Any]:
    """Parse a line into a JSON object, in which no key may stand twice.

    U+FFFD replaces characters that UTF-8 cannot encode (lone surrogates). `expected` is for the error
    messages.
    """
    try:
        row = json.loads(line, object_pairs_hook=partial(_object, where))
        # Only an escape can give a lone surrogate: the line itself was decoded from UTF-8.
        if _SURROGATE.search(line):
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


def language_of(row: dict[str, Any], where: str, default: str | None = None) -> str | None:
    """Return the text under "language", or `default` if it is missing, null or, as in a table, empty."""
    return (text_under(row, "language", where) if row.get("language") is not None else "") or default


_LARGEST = 1 << 28  # bytes, ten times the largest tokenizer.json in use; larger files would fill the memory
_PIECE = 1 << 20
_DEEPEST = 100  # levels; code that copies the values recurses, and Python ends a recursion at 1,000


def read_json(file: Path) -> dict[str, Any]:
    """Read a file of at most 256 MiB that holds one JSON object, of at most a hundred levels."""
    try:
        with file.open("rb") as data:
            # A device has no size to ask for, so that its content is read in pieces up to the limit.
            pieces = iter(lambda: data.read(_PIECE), b"")
            is_large = os.fstat(data.fileno()).st_size > _LARGEST
            content = b"" if is_large else b"".join(islice(pieces, _LARGEST // _PIECE))
            if is_large or data.read(1):
                raise InputError(f"{file}: has more than {_LARGEST >> 20} MiB; expected a JSON object")
        # Windows editors write a byte-order mark.
        values = parsed(content.decode("utf-8-sig"), str(file), "one JSON object")
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: not UTF-8 ({error.reason})") from None
    if _is_too_deep(values):
        raise InputError(f"{file}: JSON that is nested too deeply (over {_DEEPEST} levels)")
    return values


def read_toml(file: Path) -> dict[str, Any]:
    """Read a TOML file."""
    text = whole_text(file)
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise InputError(f"{file}: TOML that is nested too deeply") from None
    except ValueError as error:  # TOML that is wrong, or a number with more digits than Python reads
        raise InputError(f"{file}: not TOML ({error})") from None


def _is_too_deep(values: Any) -> bool:
    level = [values]
    for _ in range(_DEEPEST + 1):
        level = [part for part in level if isinstance(part, dict | list)]
        level = [part for parts in level for part in (parts.values() if isinstance(parts, dict) else parts)]
    return any(isinstance(part, dict | list) for part in level)


_SEPARATORS = ",\t; "
_EXCEL = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)  # tells Excel the separator of the file


def read_csv(file: Path, known: Collection[str]) -> tuple[list[str], Iterator[tuple[str, list[str]]]]:
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
            headers, key=lambda sign: (len(headers[sign] & set(known)), len(headers[sign]) * (sign != " "))
        )
    second = list(islice(lines, 1))
    # With spaces, pandas writes a header that begins with the empty name of its index, and two spaces around
    # an empty value. In aligned columns, several spaces are one separator.
    is_aligned = not (separator == " " and first.startswith(" ") and "  " not in first) or (
        "".join(second).startswith(" ")
    )
    found = chain([first], second, lines)
    reader = csv.reader(found, delimiter=separator, skipinitialspace=is_aligned, strict=True)
    try:
        names = [name.strip() for name in next(reader, [])]
    except csv.Error as error:
        raise InputError(f"{file}, the header: not CSV ({_csv_reason(error)})") from None
    for name, count in Counter(names).items():
        if name and count > 1:
            raise InputError(f"{file}: two columns are called {name}")
    while names and not names[-1]:  # Excel ends lines with separators where a column was emptied
        names.pop()
    if names.count("") > 1:
        unnamed = names.index("", names.index("") + 1)
        raise InputError(f"{file}: column {unnamed + 1} of the header has no name")
    return names, _rows(file, reader, len(names))


def _rows(file: Path, reader: Iterator[list[str]], columns: int) -> Iterator[tuple[str, list[str]]]:
    number = blank = 0
    try:
        for values in reader:
            if not any(map(str.strip, values)):
                # Of separators alone: a row of empty texts, or the end of a table that Excel wrote.
                blank += len(values) > 1
                continue
            for _ in range(blank):
                number += 1
                yield f"{file}, row {number}", [""] * columns
            blank = 0
            number += 1
            # As in the header: Excel ends lines with separators where a column was emptied.
            while len(values) > columns and not values[-1].strip():
                values.pop()
            if len(values) != columns:
                raise InputError(f"{file}, row {number}: {len(values)} values for {columns} columns")
            yield f"{file}, row {number}", values
    except csv.Error as error:
        raise InputError(f"{file}, row {number + blank + 1}: not CSV ({_csv_reason(error)})") from None


def _lines(file: Path) -> Iterator[str]:
    for number, line in read_lines(file):
        if "\0" in line:
            raise InputError(f"{file}, line {number}: has a NUL byte; expected a CSV file in UTF-8")
        yield from (part + "\n" for part in line.split("\r"))  # old Macs end lines with it


def _names(line: str, separator: str) -> set[str]:
    reader = csv.reader([line], delimiter=separator, skipinitialspace=True)
    return {name.strip() for name in next(reader, [])}


def _csv_reason(error: csv.Error) -> str:
    text = str(error)
    if text.startswith("field larger"):
        limit = f"{csv.field_size_limit():,}"
        return f"a value of more than {limit} characters; is a quotation mark not closed?"
    if text == "unexpected end of data":
        return "a quotation mark is not closed"
    return "text after a closing quotation mark" if " expected after " in text else text


T = TypeVar("T")
_MOST_PROBLEMS = 20  # in one message
_LARGEST_INTEGER = 1 << 63  # larger whole numbers do not fit the numbers of C, torch and numpy


def shown(name: object) -> str:
    """Return a key or name from a file for a message of one line: quoted and cut if it is unusual."""
    text = str(name)
    return text if text.isprintable() and len(text) <= 100 else reprlib.repr(text)


def build(cls: type[T], values: Mapping[str, Any], where: str) -> T:
    """Make an instance of a dataclass from the keys and values of a file; nested objects become dataclasses,
    too.

    The `InputError` lists all problems. `where` is the name of the file.
    """
    problems: list[str] = []
    instance = _build(cls, values, "", problems)
    if len(problems) > _MOST_PROBLEMS:
        problems[_MOST_PROBLEMS:] = [f"and {len(problems) - _MOST_PROBLEMS} more problems"]
    if problems:
        raise InputError(f"{where}: " + "; ".join(problems))
    return typing.cast(T, instance)


def _build(cls: type, values: Any, prefix: str, problems: list[str]) -> Any:
    """Make an instance of a dataclass from a JSON object, and append a message for each problem.

    `prefix` is the path of keys to this object, such as "model.". The instance is None if a value is missing
    or has the wrong type; if the dataclass refuses a value, it is an instance with that value.
    """
    if not isinstance(values, Mapping):
        problems.append(f"{prefix.rstrip('.') or 'the file'} must hold keys, not {reprlib.repr(values)}")
        return None
    hints = typing.get_type_hints(cls)
    fields_by_name = {field.name: field for field in fields(cls)}
    problems.extend(f"unknown key {prefix}{shown(name)}" for name in values if name not in fields_by_name)
    arguments: dict[str, Any] = {}
    usable = True
    for name, field in fields_by_name.items():
        # A null stands for a default of None, also where the class fills in another value.
        if name in values and (values[name] is not None or field.default is not None):
            before = len(problems)
            arguments[name] = _value(hints[name], values[name], prefix + name, problems)
            has_type = is_dataclass(arguments[name]) or typing.get_origin(hints[name]) is typing.Literal
            usable &= len(problems) == before or has_type
        elif field.default is not MISSING:
            arguments[name] = field.default
        elif field.default_factory is not MISSING:
            arguments[name] = field.default_factory()
        else:
            problems.append(f"missing key {prefix}{name}")
            usable = False
    if not usable:
        return None
    try:
        return cls(**arguments)
    except InputError as error:
        problems.append(f"{prefix.rstrip('.')}: {error}" if prefix else str(error))
    unchecked: Any = object.__new__(cls)  # so that the dataclass around it can be checked, too
    for name, value in arguments.items():
        object.__setattr__(unchecked, name, value)
    return unchecked


def _value(hint: Any, value: Any, name: str, problems: list[str]) -> Any:
    """Convert a JSON value to the type of a field; after a problem, the value may be wrong."""
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        if value is None:
            return None
        # The only unions in these dataclasses are a type and None.
        hint = next(h for h in typing.get_args(hint) if h is not type(None))
    if typing.get_origin(hint) is typing.Literal:
        names = typing.get_args(hint)
        if value not in names:
            problems.append(f"{name} must be {_either(names)}, not {reprlib.repr(value)}")
        return value
    if is_dataclass(hint):
        return _build(typing.cast(type, hint), value, name + ".", problems)
    if typing.get_origin(hint) is tuple:
        if not isinstance(value, list):
            problems.append(f"{name} must be a list, not {reprlib.repr(value)}")
            return None
        item = typing.get_args(hint)[0]
        return tuple(_value(item, part, f"{name}[{i}]", problems) for i, part in enumerate(value))
    if typing.get_origin(hint) is dict and isinstance(value, dict):
        kind = typing.get_args(hint)[1]
        if kind is Any:
            return value
        return {key: _value(kind, part, f"{name}.{shown(key)}", problems) for key, part in value.items()}
    hint = typing.get_origin(hint) or hint
    if hint is float and isinstance(value, int | str) and not isinstance(value, bool):
        with contextlib.suppress(ValueError):
            try:
                value = float(value)  # YAML reads 1e-4 (without a point) as a string
            except OverflowError:
                value = math.inf
    if isinstance(value, float) and not math.isfinite(value):
        problems.append(f"{name} must be a finite number, not {value!r}")
    if type(value) is int and abs(value) >= _LARGEST_INTEGER:
        problems.append(f"{name} must be a number of at most 19 digits, not {reprlib.repr(value)}")
    # Not isinstance, because True is an instance of int.
    elif type(value) is not hint:
        problems.append(f"{name} must be of type {hint.__name__}, not {reprlib.repr(value)}")
    return value


def _either(names: Sequence[str]) -> str:
    """Join names as in "a, b or c"."""
    return " or ".join([", ".join(names[:-1]), names[-1]])
