"""Reading of a file that holds one JSON object."""

from __future__ import annotations

import json
import reprlib
from collections import Counter
from pathlib import Path
from typing import Any

from simllm.errors import InputError

_LARGEST = 2**28  # bytes; ten times the largest tokenizer.json in use
_DEEPEST = 100  # levels; code that copies the values recurses, and Python ends a recursion at 1,000


def read_json(file: Path) -> dict[str, Any]:
    """Read a file that holds one JSON object.

    Raises:
        InputError: The file cannot be read, is too large, or does not hold a JSON object; or a key stands
            twice in one object, or the values are nested too deeply.
    """
    try:
        if (size := file.stat().st_size) > _LARGEST:
            raise InputError(f"{file}: {size:,} bytes; expected a JSON file of at most {_LARGEST:,}")
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: not valid JSON ({error})") from None
    try:
        values = json.loads(text, object_pairs_hook=_object)
    except ValueError as error:
        raise InputError(f"{file}: not valid JSON ({error})") from None
    except RecursionError:
        raise InputError(f"{file}: JSON that is nested too deeply") from None
    if _is_too_deep(values):
        raise InputError(f"{file}: JSON that is nested too deeply (over {_DEEPEST} levels)")
    if not isinstance(values, dict):
        raise InputError(f"{file}: expected a JSON object")
    return values


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make the dict of a JSON object; of a key that stands twice, libraries read different values."""
    values = dict(pairs)
    if len(values) < len(pairs):
        twice, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise ValueError(f"key {reprlib.repr(twice)} stands twice in one object")
    return values


def _is_too_deep(values: Any) -> bool:
    """Return whether JSON values are nested more than `_DEEPEST` levels deep."""
    level = [values]
    for _ in range(_DEEPEST + 1):
        level = [part for part in level if isinstance(part, dict | list)]
        level = [part for parts in level for part in (parts.values() if isinstance(parts, dict) else parts)]
    return any(isinstance(part, dict | list) for part in level)
