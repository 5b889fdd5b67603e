"""Change of all strings in nested dictionaries, lists and tuples by a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def map_texts(values: Any, change: Callable[[str], str]) -> Any:
    """Return a copy of nested dictionaries, lists and tuples, with `change` applied to each string."""
    if isinstance(values, str):
        return change(values)
    if isinstance(values, dict):
        return {map_texts(key, change): map_texts(value, change) for key, value in values.items()}
    if isinstance(values, list | tuple):
        return type(values)(map_texts(value, change) for value in values)
    return values
