"""Filter of JSON lines by the values of their fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from simllm.io.files import objects

Values = Mapping[str, tuple[str, ...]]  # by the name of a field, such as {"label": ("same",)}


def select_rows(file: Path, only: Values, leave_out: Values) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the selected rows of a JSON lines file, each with its location for error messages.

    Args:
        file: The file.
        only: Rows are left out unless each of these fields has one of these values.
        leave_out: Rows are left out if one of these fields has one of these values.
    """
    for where, row in objects(file):
        has_values = all(row.get(name) in values for name, values in only.items())
        if has_values and not any(row.get(name) in values for name, values in leave_out.items()):
            yield where, row
