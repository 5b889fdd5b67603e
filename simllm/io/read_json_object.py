"""Reading of a file that holds one JSON object."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from simllm.errors import InputError


def read_json(file: Path) -> dict[str, Any]:
    """Read a file that holds one JSON object.

    Raises:
        InputError: The file cannot be read, or does not hold a JSON object.
    """
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror})") from None
    except ValueError as error:
        raise InputError(f"{file}: not valid JSON ({error})") from None
    except RecursionError:
        raise InputError(f"{file}: JSON that is nested too deeply") from None
    if not isinstance(values, dict):
        raise InputError(f"{file}: expected a JSON object")
    return values
