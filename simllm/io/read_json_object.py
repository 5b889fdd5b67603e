"""Reading of a file that holds one JSON object."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from simllm.errors import InputError
from simllm.io.read_json_lines import parsed

_LARGEST = 1 << 28  # bytes; larger files would fill the memory


def read_json(file: Path) -> dict[str, Any]:
    """Read a file that holds one JSON object.

    Raises:
        InputError: The file cannot be read, has more than 256 MiB, or does not hold a JSON object.
    """
    try:
        with file.open("rb") as data:
            content = data.read(_LARGEST + 1)
        if len(content) > _LARGEST:
            raise InputError(f"{file}: has more than {_LARGEST >> 20} MiB; expected a JSON object")
        return parsed(content.decode("utf-8-sig"), str(file), "one JSON object")
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: not UTF-8 ({error.reason})") from None
