"""Pairs of texts with human ratings: JSON lines, CSV or TSV, or the table that Haque et al. published.

The study of Haque et al. is "Semantic similarity metrics for evaluating source code summarization", 2022.
Each row of its table `final_megafile.csv` has one rating: the function, the rater, two summaries of the
function, their similarity from 1 to 4, and the values of many metrics. The column `source` tells which of the
columns `text` and `text.1` has the reference; the other has the candidate.
"""

from __future__ import annotations

import contextlib
import json
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from simllm.array_types import Floats
from simllm.errors import InputError
from simllm.io import reading
from simllm.io.tables import format_count, label
from simllm.metrics.interface import Example
from simllm.stats.agreement import mean_ratings

_NEEDED = ("function_id", "user_id", "similarity", "source", "text", "text.1")
_NOT_METRICS = {"", "Unnamed: 0", "accurate", "adequate", "concise", "bleu_cat", "function", *_NEEDED}
_ROUNDING = 0.0501  # allowed difference of a mean that was rounded to tenths
_LARGEST = 1e100  # the squares of larger numbers may overflow


def read_rows(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Read the table, and collect the ratings by function, which has one pair of texts and several raters.

    Yields the place of the function's first row, such as "FILE, row 3", and a dict like a line of a file of
    ratings (see `simllm.evaluation.ratings`).
    """
    pairs: dict[str, tuple[str, dict[str, Any]]] = {}
    for where, line in _lines(file):
        try:
            texts = (
                (line["text"], line["text.1"])
                if line["source"] == "reference"
                else (line["text.1"], line["text"])
            )
            row = {
                "reference": texts[0],
                # The candidates have placeholders such as <UNK>. The authors remove them before they compute
                # metrics.
                "candidate": _without_placeholders(texts[1]),
                "language": "java",
                "metrics": {k: float(v) for k, v in line.items() if k not in _NOT_METRICS and v},
            }
            rating = float(line["similarity"])
            if not math.isfinite(rating):
                raise ValueError(f"similarity {rating}")
        except (TypeError, ValueError) as error:
            reason = "too few cells" if isinstance(error, TypeError) else error
            raise InputError(f"{where}: not a row of the table of Haque et al. ({reason})") from None
        _, pair = pairs.setdefault(line["function_id"], (where, row | {"ratings": {}}))
        pair["ratings"][line["user_id"]] = rating
    yield from pairs.values()


def _without_placeholders(text: str) -> str:
    """Remove each word's part from its first "<" to its last ">", such as `<UNK>`.

    A regular expression would take quadratic time for many "<".
    """
    words = []
    for word in text.split():
        first, last = word.find("<"), word.rfind(">")
        words.append(f"{word[:first]} {word[last + 1 :]}" if 0 <= first < last - 1 else word)
    return " ".join(" ".join(words).split())


def _lines(file: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the place of each row below the header, and a dict from column name to cell."""
    names, rows = reading.read_csv(file, _NEEDED)
    if missing := [name for name in _NEEDED if name not in names]:
        raise InputError(
            f"{file}: has no column {', '.join(missing)}; expected JSON lines with reference, "
            "candidate and rating, a table with these columns (or --columns), "
            "or the CSV table of Haque et al. (final_megafile.csv)"
        )
    for where, values in rows:
        yield where, dict(zip(names, values, strict=True))


@dataclass(frozen=True)
class Ratings:
    """n pairs of texts, each a candidate (such as a generated summary) and a reference, with human ratings.

    Attributes:
        name: The name of the file without its suffix.
        values: (n,) mean ratings; higher is more similar.
        raters: (n, raters) ratings by each person; NaN if a person did not rate a pair.
        groups: Under "language", the programming language of each pair; under "system", the system that wrote
            each candidate. A property is left out if a pair in the file lacks it.
        columns: Scores by other metrics, if the file has any: a dict from the metric's name to (n,) scores;
            NaN if a pair has no score.
        sources: For each pair, the code before it was edited, or the code that the texts describe. Empty if
            a pair lacks it.
    """

    name: str
    references: list[str]
    candidates: list[str]
    values: Floats
    raters: Floats = field(default_factory=lambda: np.empty((0, 0)))
    groups: dict[str, list[str]] = field(default_factory=dict)
    columns: dict[str, Floats] = field(default_factory=dict)
    sources: list[str] = field(default_factory=list)

    def take(self, places: Sequence[int]) -> Ratings:
        """Return some of the pairs, by their places."""

        def some(values: list[str]) -> list[str]:
            return [values[place] for place in places] if values else []

        return replace(
            self,
            references=some(self.references),
            candidates=some(self.candidates),
            values=self.values[places],
            raters=self.raters[places] if len(self.raters) else self.raters,
            groups={name: some(values) for name, values in self.groups.items()},
            columns={name: values[places] for name, values in self.columns.items()},
            sources=some(self.sources),
        )

    def examples(self) -> list[Example]:
        """Convert the pairs to the input of metrics.

        All languages are None if a pair in the file lacks its language. The same is true of the sources.
        """
        nothing: list[str | None] = [None] * len(self.candidates)
        languages, sources = self.groups.get("language") or nothing, self.sources or nothing
        return list(map(Example, self.candidates, self.references, sources, languages))


def load(
    file: Path, fields: Sequence[str] = (), leave_out: Mapping[str, Sequence[str]] | None = None
) -> Ratings:
    """Load rated pairs from a file.

    Args:
        file: JSON lines, CSV or TSV, with a row for each pair. Or the CSV table of human ratings that Haque
            et al. published ("Semantic similarity metrics for evaluating source code summarization", 2022).
        fields: The keys (in a table, columns) of the reference, the candidate and the rating; further keys
            are those of more raters. Rows without any of these ratings are left out. By default, the keys are
            `reference`, `candidate` (or `candidate_clean`) and `rating` (or `ratings` or `passed`). If a line
            has the key `a` but no `reference`, the default is `a`, `b` and `score`.
        leave_out: Values by key; lines that have one of them are left out.

    Raises:
        InputError: The file cannot be read, a line is not JSON, lacks a key or has a wrong value, there are
            fewer than 3 pairs, or all ratings are equal.
    """
    rows = [
        (where, row)
        for where, row in _read(file, fields)
        if not any(row.get(name) in values for name, values in (leave_out or {}).items())
    ]
    if reading.is_table(file) or len(fields) > 3:
        fields = ()  # they have the default keys now
    # For each row, because a file may mix lines with different keys.
    pairs = [_pair(row, fields or _fields(row), where) for where, row in rows]
    if len(pairs) < 3:
        found = format_count(len(pairs), "rated pair")
        raise InputError(f"{file}: {found}; a correlation needs at least 3")
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
        _sources(rows),
    )


# What programs and people write for a rating that nobody gave.
_GAPS = {"", "null", "none", "nan", "na", "n/a"}
_TEXTS = ("language", "system", "code", "source")


def _read(file: Path, fields: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the place and the values of each row that has a rating, in the keys of JSON lines."""
    if fields and len(fields) < 3:
        raise InputError("expected the columns of reference, candidate and one or more ratings")
    if not reading.is_table(file):
        found = reading.objects(file)
    elif fields or {"reference", "candidate", "rating"} <= set(reading.read_csv(file, _COLUMNS)[0]):
        found = reading.rows(file, {*_COLUMNS, *fields})
    else:
        yield from read_rows(file)
        return
    fields = fields or (("reference", "candidate", "rating") if reading.is_table(file) else ())
    gaps = kept = 0
    for where, row in found:
        # Without named columns, a JSON line that lacks its rating is more likely a mistake than a gap.
        if fields and all(name in row and _is_gap(row[name]) for name in fields[2:]):
            gaps += 1
            continue
        kept += 1
        if reading.is_table(file) or len(fields) > 3:
            yield where, _with_default_keys(row, fields, where, reading.is_table(file))
        else:
            yield where, row
    if gaps:
        message = f"{gaps} of {gaps + kept} rows of {label(file.name)} have no rating and are left out"
        warnings.warn(message, stacklevel=2)


_COLUMNS = ("reference", "candidate", "rating", *_TEXTS)


def _with_default_keys(
    row: dict[str, Any], fields: Sequence[str], where: str, is_table: bool
) -> dict[str, Any]:
    """Rename the keys of a row; further columns of numbers in a table are the scores of metrics."""
    reference, candidate, *raters = fields
    given = {name: _number_or_gap(row, name, where) for name in raters}
    texts = {"reference": reading.text_under(row, reference, where)}
    texts["candidate"] = reading.text_under(row, candidate, where)
    rating = {"ratings": given} if len(raters) > 1 else {"rating": given[raters[0]]}
    more = {name: row[name] for name in _TEXTS if row.get(name) and name not in fields}
    if not is_table:
        return {**more, **texts, **rating, "metrics": row.get("metrics")}
    scores = {}
    for name, cell in row.items():
        if name and name not in (*fields, *_TEXTS):
            with contextlib.suppress(ValueError):  # a column of texts, such as an id
                scores[name] = None if _is_gap(cell) else float(cell)
    return {**more, **texts, **rating, "metrics": scores}


def _is_gap(value: Any) -> bool:
    return value is None or (isinstance(value, str) and value.strip().lower() in _GAPS)


def _number_or_gap(row: dict[str, Any], name: str, where: str) -> float | None:
    """Return the rating under a key, which a table has as a text; None if nobody gave it."""
    value = reading.value_under(row, name, where, "a number")
    if _is_gap(value):
        return None
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            value = float(value)
    return _number(value, f'{where}: expected a number under "{name}"')


def _fields(row: dict[str, Any]) -> tuple[str, str, str]:
    """Return the keys of the reference, the candidate and the rating in a row."""
    if "reference" not in row and "a" in row:
        return "a", "b", "score"
    known = {name for name, value in row.items() if value is not None}  # pandas writes null for no value
    rating = next((name for name in ("rating", "ratings", "passed") if name in known), "rating")
    return "reference", "candidate_clean" if "candidate_clean" in known else "candidate", rating


def _pair(row: dict[str, Any], fields: Sequence[str], where: str) -> tuple[str, str, float]:
    """Read the reference, the candidate and the mean rating under three keys of a row."""
    reference, candidate, rating = fields
    if rating == "ratings":
        value = _mean(row, where)
    elif rating == "passed":
        # True and False equal 1 and 0.
        if row.get(rating) not in (0, 1):
            raise InputError(f'{where}: expected true or false under "passed"')
        value = float(row[rating])
    else:
        value = _number(row.get(rating), f'{where}: expected a number under "{rating}"')
        if rating == "rating" and row.get("ratings") is not None:
            mean = _mean(row, where)
            # A mean of other raters, or of another pair, is a mistake in the file.
            if abs(mean - value) > _ROUNDING:
                raise InputError(f'{where}: "rating" is {value:g}, but the mean of "ratings" is {mean:g}')
    return (reading.text_under(row, reference, where), reading.text_under(row, candidate, where), value)


def _mean(row: dict[str, Any], where: str) -> float:
    return float(mean_ratings(np.array([list(_ratings_of(row, where).values())]))[0])


def _by_rater(rows: Sequence[tuple[str, dict[str, Any]]]) -> Iterator[dict[str, float]]:
    """Yield the ratings of each row by rater; an empty dict for a row without `ratings`."""
    for where, row in rows:
        yield _ratings_of(row, where) if row.get("ratings") is not None else {}


def _ratings_of(row: dict[str, Any], where: str) -> dict[str, float]:
    """Read the ratings of a row by rater, from a list (with names in `raters`) or an object; null is no
    rating.
    """
    ratings = row.get("ratings")
    if isinstance(ratings, list):
        raters = row.get("raters", list(range(1, len(ratings) + 1)))
        if not isinstance(raters, list) or not len(set(map(str, raters))) == len(raters) == len(ratings):
            raise InputError(f'{where}: expected {len(ratings)} different raters under "raters"')
        ratings = dict(zip(map(str, raters), ratings, strict=True))
    if not isinstance(ratings, dict) or not ratings:
        raise InputError(f'{where}: expected a list of numbers, or an object, under "ratings"')
    message = f'{where}: expected numbers under "ratings"'
    given = {rater: _number(rating, message) for rater, rating in ratings.items() if rating is not None}
    if not given:
        raise InputError(f"{message}; all are null")
    return given


def _number(value: Any, message: str) -> float:
    """Return a value as float; raise `InputError` with `message` if it is no number or too large."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not -_LARGEST <= value <= _LARGEST:
        raise InputError(f"{message}, not {json.dumps(value)[:40]}")
    return float(value)


def _matrix(ratings: list[dict[str, float]]) -> Floats:
    """Arrange the ratings of n pairs by rater as an (n, raters) array, with NaN where there is no rating."""
    column = {rater: i for i, rater in enumerate(dict.fromkeys(rater for row in ratings for rater in row))}
    matrix = np.full((len(ratings), len(column)), np.nan)
    for number, row in enumerate(ratings):
        for rater, rating in row.items():
            matrix[number, column[rater]] = rating
    return matrix


def _common(rows: Sequence[tuple[str, dict[str, Any]]], names: Sequence[str]) -> list[str]:
    """Select the names under which every row has a string or an integer, by which rows can be grouped."""
    return [name for name in names if all(isinstance(row.get(name), str | int) for _, row in rows)]


def _sources(rows: Sequence[tuple[str, dict[str, Any]]]) -> list[str]:
    """Return the source or code of each row; an empty list if a row lacks both."""
    found = (row.get("code", row.get("source")) for _, row in rows)
    sources = [source for source in found if isinstance(source, str)]
    return sources if len(sources) == len(rows) else []


def _columns(rows: Sequence[tuple[str, dict[str, Any]]]) -> dict[str, Floats]:
    """Collect the (n,) scores of each metric under `metrics`; NaN if a row has no score."""
    columns: dict[str, Floats] = {}
    for number, (where, row) in enumerate(rows):
        message = f'{where}: expected an object of numbers under "metrics"'
        scores = {} if row.get("metrics") is None else row["metrics"]
        if not isinstance(scores, dict):
            raise InputError(message)
        for name, value in scores.items():
            column = columns.setdefault(name, np.full(len(rows), np.nan))
            if value is not None and value == value:  # Python's json may write NaN for a missing value
                column[number] = _number(value, message)
    return columns
