"""Selection of rows (JSON objects) by the values of their fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from train.corpus.sources import rows

Values = Mapping[str, tuple[str, ...]]  # values by field name, such as {"label": ("same",)}


def select_rows(source: str, only: Values, leave_out: Values) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the rows of a source, with their locations, whose fields have allowed and no forbidden values.

    `source` is a path or glob pattern of JSON lines, or `hf:FOLDER`. A row without a field of `only` is left
    out.
    """
    for where, row in rows(source):
        has_values = all(row.get(name) in values for name, values in only.items())
        if has_values and not any(row.get(name) in values for name, values in leave_out.items()):
            yield where, row
