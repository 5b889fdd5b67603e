"""Rated data: pairs of a reference and a candidate, and what people think of them.

JSON lines, one pair each:

reference, candidate   the texts; `candidate_clean`, where it is given, takes the candidate's place
ratings                numbers, higher is more similar: a list, one a rater, or {"rater": number, …}
raters                 who gave them, where `ratings` is a list (else: by position)
rating                 the only rating, or the mean; beside `ratings`, within .05 of theirs
language, system       what wrote the candidate, and of code in what language
metrics                {"name": number, …} scores that others have computed

`rating` or `ratings` must be there. Haque et al.'s table (`.csv`) is read as its authors publish it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simllm.errors import InputError
from simllm.evaluation import haque_csv
from simllm.io import files

_ROUNDED = 0.0501  # a mean may have been rounded to tenths


@dataclass(frozen=True)
class Ratings:
    """n rated pairs."""

    name: str
    references: list[str]
    candidates: list[str]
    values: NDArray[np.float64]  # (n,) mean rating, higher is more similar
    raters: NDArray[np.float64] = field(
        default_factory=lambda: np.empty((0, 0))
    )  # (n, raters), NaN: not rated
    groups: dict[str, list[str]] = field(default_factory=dict)  # "language", "system" -> (n,)
    columns: dict[str, NDArray[np.float64]] = field(default_factory=dict)  # (n,) others' scores, NaN: missing


def load(file: Path, fields: Sequence[str] = ()) -> Ratings:
    """Read rated pairs; `fields` names reference, candidate and rating where they are called otherwise.

    Sets of sentence similarity may call them `a`, `b` and `score`. Raises InputError that
    names the file, the line and what was expected there.
    """
    is_table = file.name.removesuffix(".gz").endswith(".csv")
    rows = list(haque_csv.rows(file) if is_table else files.objects(file))
    pairs = [_pair(row, fields or _fields(row), where) for where, row in rows]
    if len(pairs) < 3:
        raise InputError(f"{file}: {len(pairs)} rated pairs; a correlation needs at least 3")
    references, candidates, values = zip(*pairs, strict=True)
    if len(set(values)) == 1:
        raise InputError(f"{file}: all ratings are {values[0]:g}; there is nothing to correlate with")
    return Ratings(
        Path(file.name.removesuffix(".gz")).stem,
        list(references),
        list(candidates),
        np.array(values, float),
        _matrix(list(_by_rater(rows))),
        {name: [str(row[name]) for _, row in rows] for name in _common(rows, ("language", "system"))},
        _columns(rows),
    )


def _fields(row: dict[str, Any]) -> tuple[str, str, str]:
    if "reference" not in row and "a" in row:
        return "a", "b", "score"
    rating = "ratings" if "rating" not in row and "ratings" in row else "rating"
    return "reference", "candidate_clean" if "candidate_clean" in row else "candidate", rating


def _pair(row: dict[str, Any], fields: Sequence[str], where: str) -> tuple[str, str, float]:
    reference, candidate, rating = fields
    if rating == "ratings":
        value = float(np.mean(list(_ratings_of(row, where).values())))
    else:
        value = _number(row.get(rating), f'{where}: expected a number under "{rating}"')
        if rating == "rating" and "ratings" in row:
            mean = float(np.mean(list(_ratings_of(row, where).values())))
            if abs(mean - value) > _ROUNDED:
                raise InputError(f'{where}: "rating" is {value:g}, but the mean of "ratings" is {mean:g}')
    return files.text_under(row, reference, where), files.text_under(row, candidate, where), value


def _by_rater(rows: Sequence[tuple[str, dict[str, Any]]]) -> Iterator[dict[str, float]]:
    for where, row in rows:
        yield _ratings_of(row, where) if "ratings" in row else {}


def _ratings_of(row: dict[str, Any], where: str) -> dict[str, float]:
    """Rater -> rating."""
    given = row["ratings"]
    if isinstance(given, list):
        raters = row.get("raters", list(range(1, len(given) + 1)))
        if not isinstance(raters, list) or not len(set(map(str, raters))) == len(raters) == len(given):
            raise InputError(f'{where}: expected {len(given)} different raters under "raters"')
        given = dict(zip(raters, given, strict=True))
    if not isinstance(given, dict) or not given:
        raise InputError(f'{where}: expected a list of numbers, or an object, under "ratings"')
    wanted = f'{where}: expected numbers under "ratings"'
    return {str(rater): _number(rating, wanted) for rater, rating in given.items()}


def _number(value: Any, otherwise: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
        raise InputError(otherwise)
    return float(value)


def _matrix(ratings: list[dict[str, float]]) -> NDArray[np.float64]:
    raters = list(dict.fromkeys(rater for row in ratings for rater in row))
    return np.array([[row.get(rater, np.nan) for rater in raters] for row in ratings], float)


def _common(rows: Sequence[tuple[str, dict[str, Any]]], names: Sequence[str]) -> list[str]:
    return [name for name in names if all(isinstance(row.get(name), str | int) for _, row in rows)]


def _columns(rows: Sequence[tuple[str, dict[str, Any]]]) -> dict[str, NDArray[np.float64]]:
    """Name -> (n,) what the rows have of it under "metrics"; NaN where that is nothing or null."""
    found: dict[str, NDArray[np.float64]] = {}
    for number, (where, row) in enumerate(rows):
        wanted = f'{where}: expected an object of numbers under "metrics"'
        given = row.get("metrics") or {}
        if not isinstance(given, dict):
            raise InputError(wanted)
        for name, value in given.items():
            column = found.setdefault(name, np.full(len(rows), np.nan))
            if value is not None and value == value:  # NaN is what Python's json writes for nothing
                column[number] = _number(value, wanted)
    return found
