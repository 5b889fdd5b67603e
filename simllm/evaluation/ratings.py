"""Rated data: JSON lines of a reference, a candidate and the people's rating of the pair."""

from __future__ import annotations

from collections.abc import Sequence
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


def load(file: Path, fields: Sequence[str] = ()) -> Ratings:
    """Read rated pairs from the three fields: reference, candidate and a number.

    Without `fields` these are `reference`, `candidate_clean` or else `candidate`, and
    `rating`; or `a`, `b` and `score`, as sets of sentence similarity have them. Raises
    InputError that names the file, the line and what was expected there.
    """
    rows = [_row(row, fields or _fields(row), where) for where, row in files.objects(file)]
    if len(rows) < 3:
        raise InputError(f"{file}: {len(rows)} rated pairs; a correlation needs at least 3")
    references, candidates, values = zip(*rows, strict=True)
    if len(set(values)) == 1:
        raise InputError(f"{file}: all ratings are {values[0]:g}; there is nothing to correlate with")
    return Ratings(file.stem, list(references), list(candidates), np.array(values, float))


def _fields(row: dict[str, Any]) -> tuple[str, str, str]:
    if "reference" not in row and "a" in row:
        return "a", "b", "score"
    return "reference", "candidate_clean" if "candidate_clean" in row else "candidate", "rating"


def _row(row: dict[str, Any], fields: Sequence[str], where: str) -> tuple[str, str, float]:
    reference, candidate, name = fields
    rating = row.get(name)
    if isinstance(rating, bool) or not isinstance(rating, int | float) or not np.isfinite(rating):
        raise InputError(f'{where}: expected a number under "{name}"')
    return files.text_under(row, reference, where), files.text_under(row, candidate, where), float(rating)
