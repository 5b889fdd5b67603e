"""Selection of rows (JSON objects) by the values of their fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from train.corpus.sources import rows

Values = Mapping[str, tuple[str, ...]]  # values by field name, such as {"label": ("same",)}


def select_rows(source: str, only: Values, leave_out: Values) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the rows (JSON objects) that have certain values in their fields.

    Args:
        source: A path or glob pattern of JSON-lines files, or `hf:FOLDER` for a Hugging Face data set.
        only: The allowed values of some fields, such as `{"label": ("same",)}`. A row is left out if one of
            these fields is missing or has another value.
        leave_out: The forbidden values of some fields. A row is left out if one of these fields has a
            forbidden value.

    Yields:
        The location of the row for error messages, and the row.
    """
    for where, row in rows(source):
        has_values = all(row.get(name) in values for name, values in only.items())
        if has_values and not any(row.get(name) in values for name, values in leave_out.items()):
            yield where, row
