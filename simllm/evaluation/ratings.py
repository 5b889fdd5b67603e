"""Rated data: pairs of a reference and a candidate, with ratings by people.

JSON lines, one pair each:

reference, candidate   the texts; `candidate_clean`, if given, replaces the candidate
ratings                numbers, higher is more similar: a list with one per rater, or {"rater": number, …}
raters                 names of the raters, if `ratings` is a list (default: their positions)
rating                 the only rating, or the mean; beside `ratings` it must be their mean, within .05
language, system       the language of the code, and the system that wrote the candidate
metrics                {"name": number, …} scores that others have computed

`rating` or `ratings` is required. Haque et al.'s table (`.csv`) is read as its authors publish it.
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
from simllm.evaluation.labels import label
from simllm.io import files
from simllm.stats.rater_agreement import mean_ratings

_ROUNDED = 0.0501  # a mean may have been rounded to tenths
_MOST = 1e100  # a larger number cannot be squared

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Ratings:
    """n rated pairs."""

    name: str
    references: list[str]
    candidates: list[str]
    values: Floats  # (n,) mean rating, higher is more similar
    raters: Floats = field(default_factory=lambda: np.empty((0, 0)))  # (n, raters), NaN: not rated
    groups: dict[str, list[str]] = field(default_factory=dict)  # "language", "system" -> (n,)
    columns: dict[str, Floats] = field(default_factory=dict)  # (n,) others' scores, NaN: missing


def load(file: Path, fields: Sequence[str] = ()) -> Ratings:
    """Read rated pairs.

    Args:
        file: JSON lines (see the module), or Haque et al.'s table.
        fields: names of the fields for reference, candidate and rating, if they differ from the
            usual ones. Sets of sentence similarity may use `a`, `b` and `score` without this.

    Raises:
        InputError: bad input; the message names the file, the line and what was expected.
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
        label(Path(file.name.removesuffix(".gz")).stem),
        list(references),
        list(candidates),
        np.array(values, float),
        _matrix(list(_by_rater(rows))),
        {name: [label(str(row[name])) for _, row in rows] for name in _common(rows, ("language", "system"))},
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
        value = _mean(row, where)
    else:
        value = _number(row.get(rating), f'{where}: expected a number under "{rating}"')
        if rating == "rating" and "ratings" in row:
            mean = _mean(row, where)
            if abs(mean - value) > _ROUNDED:
                raise InputError(f'{where}: "rating" is {value:g}, but the mean of "ratings" is {mean:g}')
    return files.text_under(row, reference, where), files.text_under(row, candidate, where), value


def _mean(row: dict[str, Any], where: str) -> float:
    return float(mean_ratings(np.array([list(_ratings_of(row, where).values())]))[0])


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
        given = dict(zip(map(str, raters), given, strict=True))
    if not isinstance(given, dict) or not given:
        raise InputError(f'{where}: expected a list of numbers, or an object, under "ratings"')
    wanted = f'{where}: expected numbers under "ratings"'
    return {rater: _number(rating, wanted) for rater, rating in given.items()}


def _number(value: Any, otherwise: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not -_MOST <= value <= _MOST:
        raise InputError(otherwise)
    return float(value)


def _matrix(ratings: list[dict[str, float]]) -> Floats:
    """(n, raters) ratings, NaN where there is none."""
    column = {rater: i for i, rater in enumerate(dict.fromkeys(rater for row in ratings for rater in row))}
    found = np.full((len(ratings), len(column)), np.nan)
    for number, row in enumerate(ratings):
        for rater, rating in row.items():
            found[number, column[rater]] = rating
    return found


def _common(rows: Sequence[tuple[str, dict[str, Any]]], names: Sequence[str]) -> list[str]:
    return [name for name in names if all(isinstance(row.get(name), str | int) for _, row in rows)]


def _columns(rows: Sequence[tuple[str, dict[str, Any]]]) -> dict[str, Floats]:
    """Read the scores under "metrics": name -> (n,), NaN where a row has none or null."""
    found: dict[str, Floats] = {}
    for number, (where, row) in enumerate(rows):
        wanted = f'{where}: expected an object of numbers under "metrics"'
        given = {} if row.get("metrics") is None else row["metrics"]
        if not isinstance(given, dict):
            raise InputError(wanted)
        for name, value in given.items():
            column = found.setdefault(name, np.full(len(rows), np.nan))
            if value is not None and value == value:  # NaN is what Python's json writes for nothing
                column[number] = _number(value, wanted)
    return found
