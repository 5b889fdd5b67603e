"""Strict loading of dataclasses from the content of JSON or YAML files.

Strict means that each of these is an error: an unknown key, a missing required key, a value of a wrong type.
"""

from __future__ import annotations

import contextlib
import math
import reprlib
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, TypeVar

from simllm.errors import InputError

T = TypeVar("T")
_MOST_PROBLEMS = 20  # in one message
_LARGEST = 1 << 63  # larger whole numbers do not fit the numbers of C, torch and numpy


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
        if name in values:
            before = len(problems)
            arguments[name] = _value(hints[name], values[name], prefix + name, problems)
            usable &= len(problems) == before or is_dataclass(arguments[name])
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
    if type(value) is int and abs(value) >= _LARGEST:
        problems.append(f"{name} must be a number of at most 19 digits, not {reprlib.repr(value)}")
    # Not isinstance, because True is an instance of int.
    elif type(value) is not hint:
        problems.append(f"{name} must be of type {hint.__name__}, not {reprlib.repr(value)}")
    return value
