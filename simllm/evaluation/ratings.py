"""Rated data: JSON lines of a reference, a candidate and the people's rating of the pair."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simllm.errors import InputError


@dataclass(frozen=True)
class Ratings:
    """n rated pairs."""

    name: str
    references: list[str]
    candidates: list[str]
    values: NDArray[np.float64]  # (n,) mean rating, higher is more similar


def load(file: Path) -> Ratings:
    """Read rated pairs: `reference`, `rating`, and `candidate_clean` or else `candidate`.

    Raises InputError that names the file, the line and what was expected there.
    """
    rows = []
    try:
        with file.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                rows.append(_row(line, f"{file}, line {number}"))
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: not UTF-8 ({error.reason})") from None
    if len(rows) < 3:
        raise InputError(f"{file}: {len(rows)} rated pairs; a correlation needs at least 3")
    references, candidates, values = zip(*rows, strict=True)
    return Ratings(file.stem, list(references), list(candidates), np.array(values, float))


def _row(line: str, where: str) -> tuple[str, str, float]:
    try:
        row: Any = json.loads(line)
    except ValueError as error:
        raise InputError(f"{where}: not JSON ({error})") from None
    if not isinstance(row, dict):
        raise InputError(f"{where}: expected a JSON object")
    reference, candidate = row.get("reference"), row.get("candidate_clean", row.get("candidate"))
    rating = row.get("rating")
    if not isinstance(reference, str):
        raise InputError(f'{where}: expected a text under "reference"')
    if not isinstance(candidate, str):
        raise InputError(f'{where}: expected a text under "candidate" or "candidate_clean"')
    if isinstance(rating, bool) or not isinstance(rating, int | float) or not np.isfinite(rating):
        raise InputError(f'{where}: expected a number under "rating"')
    return reference, candidate, float(rating)
