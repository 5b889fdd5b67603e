"""Reading of a file that holds one JSON object."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from simllm.errors import InputError
from simllm.io.read_json_lines import parsed

_LARGEST = 1 << 28  # bytes, ten times the largest tokenizer.json in use; larger files would fill the memory
_DEEPEST = 100  # levels; code that copies the values recurses, and Python ends a recursion at 1,000


def read_json(file: Path) -> dict[str, Any]:
    """Read a file of at most 256 MiB that holds one JSON object, of at most a hundred levels."""
    try:
        with file.open("rb") as data:
            # One byte more tells a file of the largest size from a larger one, also for a device without a
            # size.
            content = data.read(_LARGEST + 1)
        if len(content) > _LARGEST:
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


def _is_too_deep(values: Any) -> bool:
    level = [values]
    for _ in range(_DEEPEST + 1):
        level = [part for part in level if isinstance(part, dict | list)]
        level = [part for parts in level for part in (parts.values() if isinstance(parts, dict) else parts)]
    return any(isinstance(part, dict | list) for part in level)
