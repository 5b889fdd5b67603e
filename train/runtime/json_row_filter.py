"""Selection of rows from JSON-lines files by the values of their fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from simllm.io.files import objects

Values = Mapping[str, tuple[str, ...]]  # values by field name, such as {"label": ("same",)}


def select_rows(file: Path, only: Values, leave_out: Values) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the rows of a JSON-lines file whose fields have certain values.

    Args:
        file: The JSON-lines file.
        only: Wanted values by field. A row needs a wanted value in every such field.
        leave_out: Unwanted values by field. A row with an unwanted value in any such field is left out.

    Yields:
        The location of the row for error messages (file and line), and the row.
    """
    for where, row in objects(file):
        has_values = all(row.get(name) in values for name, values in only.items())
        if has_values and not any(row.get(name) in values for name, values in leave_out.items()):
            yield where, row
