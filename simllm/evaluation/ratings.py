"""Rated data: JSON lines of a reference, a candidate and the people's rating of the pair."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simllm import files
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
    rows = [_row(row, where) for where, row in files.objects(file)]
    if len(rows) < 3:
        raise InputError(f"{file}: {len(rows)} rated pairs; a correlation needs at least 3")
    references, candidates, values = zip(*rows, strict=True)
    if len(set(values)) == 1:
        raise InputError(f"{file}: all ratings are {values[0]:g}; there is nothing to correlate with")
    return Ratings(file.stem, list(references), list(candidates), np.array(values, float))


def _row(row: dict[str, Any], where: str) -> tuple[str, str, float]:
    rating = row.get("rating")
    if isinstance(rating, bool) or not isinstance(rating, int | float) or not np.isfinite(rating):
        raise InputError(f'{where}: expected a number under "rating"')
    candidate = "candidate_clean" if "candidate_clean" in row else "candidate"
    return files.text_under(row, "reference", where), files.text_under(row, candidate, where), float(rating)
