"""Predictions of classifiers: the table, its readers, and the checks of its rows."""

from __future__ import annotations

import difflib
import json
import math
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas import DataFrame, Series

from simllm.array_types import Floats
from simllm.errors import InputError, OptionError
from simllm.evaluation.classifiers import formats
from simllm.evaluation.classifiers.labels import INVENTED, MISSING, OF_CLASS, Spelling, find_class, unify
from simllm.io import reading
from simllm.io import tables as result_tables

KEYS = ("classifier", "split", "fold", "data_set", "variant", "run", "item")  # no two rows agree in all
COSTS = ("seconds", "tokens", "energy_wh", "cost")
PLACE = "(file and row)"  # the column that tells where each row was read, for error messages
SPLITS = ("train", "validation", "test")
# A row may have at most one of these, which tells how certain the classifier is. `probabilities` is an object
# in JSON lines; in CSV files, it is replaced by columns such as `p:bug`.
CERTAINTIES = ("confidence", "probability", "probabilities", "score")
COLUMNS = (*KEYS, "gold", "predicted", *CERTAINTIES, *COSTS)
_NO_CLASS = ("nan", "<na>", "#n/a")  # other words for a missing value may be the name of a class
_LARGEST = 1e100  # sums and squares of larger numbers may be infinite
_MOST_SHOWN = 40  # characters of a wrong value in a message
_SUM_TOLERANCE = 0.005  # probabilities may be rounded


@dataclass(frozen=True)
class Predictions:
    """n predictions of classifiers, as a table.

    Attributes:
        rows: A table with one row for each prediction, and these columns:

            - `classifier`, `item` and the other columns in `KEYS` identify the prediction. They are text.
            - `gold` is the true class, as text.
            - `predicted` is the predicted class, as text; None for an unparsed output.
            - `confidence` tells how certain the classifier is of the predicted class, from 0 to 1.
              `probability` is the probability of the positive class. `score` is any number that is higher for
              the positive class. A row has at most one of the three. The others are NaN.
            - Columns such as `p:bug` have the probability of a class, here the class "bug".
            - `seconds`, `tokens` and the other columns in `COSTS` tell what the prediction cost; NaN if
              missing.
            - The column `PLACE` tells where the row was read, such as "FILE, row 3", for error messages.
            - Other columns are text.
        spelling: The labels that were spelled in several ways.
        originals: The variant that counts as the original, for each classifier without original rows.
    """

    rows: DataFrame
    spelling: Spelling = field(default_factory=Spelling)
    originals: Mapping[str, str] = field(default_factory=dict)

    def to_json_lines(self) -> Iterator[str]:
        """Yield each prediction as a line of JSON, without empty values other than that of `predicted`."""
        columns = [name for name in self.rows if name not in (PLACE, INVENTED)]
        for values in self.rows[columns].itertuples(index=False):
            row = dict(zip(columns, values, strict=True))
            kept = {name: value for name, value in row.items() if value not in ("", None) and value == value}
            yield json.dumps({"predicted": None, **kept}, ensure_ascii=False) + "\n"


def make(tables: Iterable[DataFrame]) -> Predictions:
    """Join tables of predictions, and check their rows.

    Args:
        tables: Tables with some of the columns in `COLUMNS`, at least `item`, `gold` and `predicted`.

    Raises:
        InputError: A row is wrong.
    """
    parts = list(tables)
    rows = pd.concat(parts, ignore_index=True)
    rows[PLACE] = [f"row {number}" for number in range(1, len(rows) + 1)]
    return _finish(rows, [set(part["gold"].dropna()) for part in parts], None, None)


def read(
    paths: Iterable[Path | str],
    columns: Mapping[str, str] | None = None,
    threshold: float | None = None,
    positive: str | None = None,
    variants: Mapping[tuple[str, str], Path | str] | None = None,
) -> Predictions:
    """Read predictions from files.

    Args:
        paths: Files: JSON lines if the name ends in `.jsonl` or `.jsonl.gz`, otherwise CSV with a header,
            with commas, tabs, semicolons or spaces between the values. A row without a `classifier` gets the
            name of its file.
        columns: The names that the files use for columns in `COLUMNS`, such as {"gold": "truth"}.
        threshold: The threshold for rows without `predicted`: if the probability or score is at least this
            value, the positive class is predicted; otherwise, the other class.
        positive: The positive class; needed with `threshold`.
        variants: Further files, by the classifier and the variant whose rows they have, such as
            ("persona", "charswap"); with ("persona", ""), a column of the file names the variant.

    Raises:
        InputError: A file or row is wrong; the message names the file and the row.
    """
    tables: list[DataFrame] = []
    named: dict[str, Path] = {}
    files = list(map(Path, paths))
    for path in files:
        table = _read_file(path, columns or {}, threshold is not None)
        if facts := formats.facts_of_name(path, files, list(table)):
            table = table.assign(**{name: value for name, value in facts.items() if name not in table})
        name = _name(path)
        if "classifier" not in table or table["classifier"].isna().any():
            if name in named:
                raise InputError(f"{path}: {named[name]} has the same name; name both in a column classifier")
            named[name] = path
            given = table["classifier"] if "classifier" in table else Series(None, table.index, dtype=object)
            table["classifier"] = given.where(given.notna(), name)
        tables.append(table)
    known = {name for table in tables for name in table["classifier"]}
    for (classifier, variant), file in (variants or {}).items():
        if classifier not in known:
            raise InputError(f"{file}: has a variant of {classifier}, but no file has rows of {classifier}")
        table = _read_file(Path(file), columns or {}, threshold is not None)
        if variant:
            table = table.assign(variant=variant)
        elif "variant" not in table or table["variant"].isna().any():
            raise InputError(f"{file}: has rows without a variant; NAME:VARIANT=FILE names it")
        tables.append(table.assign(classifier=classifier))
    if not tables:
        raise InputError("no file of predictions")
    golds = [set(table["gold"].dropna()) for table in tables]
    return _finish(pd.concat(tables, ignore_index=True), golds, threshold, positive)


def _name(path: Path) -> str:
    """Return the name of the classifier in a file without a column `classifier`: FILE of FILE.csv.gz."""
    return result_tables.printable(path.name.removesuffix(".gz")).rpartition(".")[0] or path.name


def _finish(
    rows: DataFrame, golds: Sequence[set[str]], threshold: float | None, positive: str | None
) -> Predictions:
    """Add missing columns, spell labels alike, apply the threshold, and check all rows."""
    for name in (*KEYS, "gold"):
        if name in rows:
            rows[name] = rows[name].fillna("")
    for name in COLUMNS:
        if name not in rows and name != "probabilities":
            rows[name] = "" if name in KEYS else np.nan
    rows["split"] = rows["split"].replace("", "test")
    # Before `unify`, which would take the word for a class.
    _refuse(rows, rows["gold"].str.lower().isin(_NO_CLASS), "the gold is a missing value; expected a class")
    rows, spelling = unify(rows, golds)
    if threshold is not None:
        rows["predicted"] = _apply_threshold(rows, threshold, positive)
    # pandas mixes None and NaN for missing labels.
    rows["predicted"] = rows["predicted"].astype(object).where(rows["predicted"].notna(), None)
    originals = _choose_originals(rows)
    _check(rows)
    return Predictions(rows, spelling, originals)


def _choose_originals(rows: DataFrame) -> dict[str, str]:
    """Make the first of several variants, such as prompts, the original where a classifier has no other."""
    chosen = {}
    for name, own in rows.groupby("classifier", sort=False)["variant"]:
        # A file with one variant belongs to another file, which has the originals.
        if (own != "").all() and own.nunique() > 1:
            chosen[str(name)] = str(own.iloc[0])
            rows.loc[own.index[own == own.iloc[0]], "variant"] = ""
    return chosen


def _read_file(path: Path, columns: Mapping[str, str], has_threshold: bool) -> DataFrame:
    """Read one file of predictions as a table of strings and numbers, with the names of `COLUMNS`."""
    rows = read_table(path, columns.values())
    if "probabilities" in rows:
        raise InputError(f"{path}: in CSV files, probabilities stand in columns such as p:bug")
    names = {}
    for name, actual in columns.items():
        if name not in COLUMNS:
            message = "{columns} {name}={actual}: unknown column {name}; known: {known}"
            raise OptionError(message, name=name, actual=actual, known=", ".join(COLUMNS))
        if actual not in rows:
            raise InputError(f"{path}: no column {actual}; it has {_names(rows)}")
        if name in rows and actual != name:
            message = "{path}: has a column {name}, which {columns} {name}={actual} would replace"
            raise OptionError(message, path=path, name=name, actual=actual)
        names[actual] = name
    rows = formats.rename(rows.rename(columns=names))
    for name in ("item", "gold"):
        if name not in rows:
            raise InputError(f"{path}: no column {name}; it has {_names(rows)}")
    if "predicted" not in rows and not has_threshold:
        raise OptionError(
            "{path}: no column predicted; it has {names}. {threshold} makes labels from probability or score",
            path=path,
            names=_names(rows),
        )
    for name in rows.columns.difference([*COLUMNS, PLACE]):
        # A misspelt column would silently become a column of groups.
        if close := difflib.get_close_matches(str(name), COLUMNS, 1, 0.8):
            raise InputError(f"{path}: unknown column {name}; did you mean {close[0]}?")
    numbers = ("confidence", "probability", "score", *COSTS)
    for name in [name for name in rows if name in numbers or str(name).startswith(OF_CLASS)]:
        rows[name] = _numbers(rows, str(name))
    return rows


def read_table(path: Path, names: Iterable[str] = ()) -> DataFrame:
    """Read a CSV file or JSON lines as a table of strings, with the column `PLACE`.

    Args:
        path: The file.
        names: Column names besides those in `COLUMNS`. Known names help to recognize the separator of a CSV
            file.

    Raises:
        InputError: The file cannot be read, or has no rows.
    """
    is_json = reading.suffix(path) in (".jsonl", ".json")
    rows = _read_json_lines(path) if is_json else _read_csv(path, {*COLUMNS, *names})
    if rows.empty:
        raise InputError(f"{path}: no rows in it")
    return rows


def _names(rows: DataFrame) -> str:
    return ", ".join(str(name) for name in rows.columns if name != PLACE)


def _read_csv(path: Path, known: set[str]) -> DataFrame:
    names, found = reading.read_csv(path, known)
    places, table = [], []
    for where, values in found:
        places.append(where)
        # A column has few different texts; interning stores each once.
        table.append([sys.intern(value.strip()) or None for value in values])
    rows = DataFrame(table, columns=names, dtype=object)
    rows[PLACE] = places
    return rows


def _read_json_lines(path: Path) -> DataFrame:
    """Read JSON lines as `_read_csv` reads CSV; `probabilities` becomes columns such as `p:bug`."""
    table = []
    for where, row in reading.objects(path):
        row = formats.without_request(row)
        chances = row.pop("probabilities", None)
        if chances is not None and not isinstance(chances, dict):
            raise InputError(f'{where}: expected an object under probabilities, such as {{"bug": 0.7}}')
        made = {name: _text(value) for name, value in row.items()}
        for label, value in (chances or {}).items():
            made[OF_CLASS + label] = _text(value)
        table.append(made | {PLACE: where})
    return DataFrame(table, dtype=object)


def _text(value: Any) -> str | None:
    """Convert a JSON value to the text that a CSV file would contain; None for null or an empty text."""
    if value is None or value == "":
        return None
    return value.strip() or None if isinstance(value, str) else json.dumps(value)


def _numbers(rows: DataFrame, name: str) -> Series:
    """Convert a column to numbers; an empty value, or a word such as NaN or null, becomes NaN."""
    texts = rows[name].replace("", None)
    texts = texts.where(~texts.str.lower().isin(MISSING), None)
    values = pd.to_numeric(texts, errors="coerce").astype(float)
    wrong = (values.isna() & texts.notna()) | (values.abs() > _LARGEST)
    if wrong.any():
        at = wrong.idxmax()
        shown = texts[at] if len(texts[at]) <= _MOST_SHOWN else f"{texts[at][:_MOST_SHOWN]}…"
        message = f"{rows.loc[at, PLACE]}: expected a number under {name}, not {shown!r}"
        # Spreadsheets write decimal commas where the language has them.
        if re.fullmatch(r"-?\d+,\d+", texts[at]):
            message += "; write a decimal point, not a comma"
        raise InputError(message)
    return values


def _apply_threshold(rows: DataFrame, threshold: float, positive: str | None) -> Series:
    """Return the predicted labels; missing ones are made from probabilities or scores, if possible."""
    if not math.isfinite(threshold):
        raise OptionError("{threshold} {number}: expected a number", number=threshold)
    if positive is None:
        raise OptionError("{threshold} needs {positive}: the class of rows from the threshold on")
    if rows["predicted"].notna().all():
        raise OptionError("{threshold} has no effect: every row has a predicted label already")
    positive = find_class(positive, set(rows["gold"]))
    if positive not in set(rows["gold"]):
        raise InputError(f"no row has the gold {positive}, which is the positive class")
    others = sorted(set(rows["gold"]) - {positive})
    if len(others) != 1:
        message = "{threshold} needs two classes, but the rows have {classes}"
        raise OptionError(message, classes=", ".join([positive, *others]))
    values = rows["probability"].fillna(rows["score"])
    made = Series(np.where(values >= threshold, positive, others[0]), rows.index).where(values.notna(), None)
    return rows["predicted"].where(rows["predicted"].notna(), made)


def _check(rows: DataFrame) -> None:
    """Refuse rows that lack a value, have a wrong one, or repeat or contradict another row."""
    chances = [name for name in rows if str(name).startswith(OF_CLASS)]
    _refuse(rows, rows["item"] == "", "empty item")
    _refuse(rows, rows["gold"] == "", "empty gold")
    _refuse(rows, ~rows["split"].isin(SPLITS), "expected the split train, validation or test")
    for name in ("confidence", "probability", *chances):
        _refuse(rows, (rows[name] < 0) | (rows[name] > 1), f"expected a {name} from 0 to 1")
    for name in COSTS:
        _refuse(rows, rows[name] < 0, f"negative {name}")
    given = rows[["confidence", "probability", "score"]].notna().sum(axis=1)
    if chances:
        given += rows[chances].notna().any(axis=1)
        total = rows[chances].sum(axis=1)
        wrong = rows[chances].notna().any(axis=1) & ((total - 1).abs() > _SUM_TOLERANCE)
        _refuse(rows, wrong, "the probabilities do not add up to 1")
    _refuse(rows, given > 1, "more than one of confidence, probability, probabilities and score")
    # A score may have any scale, so that it has no place among probabilities.
    ranked = rows.groupby("classifier")["score"].transform("count") > 0
    mixed = ranked & (given > 0) & rows["score"].isna()
    _refuse(
        rows,
        mixed,
        "other rows of the classifier have a score; scores and probabilities cannot be ranked together",
    )
    repeated = rows.duplicated(list(KEYS))
    if repeated.any():
        at = repeated.idxmax()
        same = (rows[list(KEYS)] == rows.loc[at, list(KEYS)]).all(axis=1)
        raise InputError(f"{rows.loc[at, PLACE]}: repeats {rows.loc[same.idxmax(), PLACE]}")
    _check_gold(rows)
    # Robustness compares each variant with its original of the same run and fold.
    keys = ["classifier", "split", "fold", "data_set", "run", "item"]
    known = pd.MultiIndex.from_frame(rows.loc[rows["variant"] == "", keys])
    lost = (rows["variant"] != "") & ~pd.MultiIndex.from_frame(rows[keys]).isin(known)
    _refuse(
        rows,
        lost,
        "a variant of an item that has no original row (one with an empty variant); "
        "--variant NAME:VARIANT=FILE names the classifier of a file",
    )


def _check_gold(rows: DataFrame) -> None:
    """Refuse two true classes of one item."""
    first = rows.groupby(["data_set", "item"], sort=False)["gold"].transform("first")
    other = first != rows["gold"]
    if other.any():
        at = other.idxmax()
        item, gold = rows.loc[at, ["item", "gold"]]
        raise InputError(f"{rows.loc[at, PLACE]}: item {item} has the gold {gold}, and {first[at]} before")


def _refuse(rows: DataFrame, wrong: Series, message: str) -> None:
    if wrong.any():
        raise InputError(f"{rows.loc[wrong.idxmax(), PLACE]}: {message}")


def check_probabilities(rows: DataFrame) -> None:
    """Raise `InputError` if some classes have a column of probabilities, but a true class has none."""
    named = {str(name).removeprefix(OF_CLASS) for name in rows if str(name).startswith(OF_CLASS)}
    missing = sorted(set(rows["gold"]) - named)
    if named and missing:
        raise InputError(
            f"no probability of the class {missing[0]}; there are those of {', '.join(sorted(named))}"
        )


def chances_of(rows: DataFrame, classes: Sequence[str]) -> DataFrame | None:
    """Return the predicted probabilities of n rows as a table (n, k), with a column for each class.

    If a row has probabilities for only some of the classes, the others are 0; if it has none, all are NaN.
    None if no row has probabilities.
    """
    named = [f"{OF_CLASS}{label}" for label in classes]
    present = [name for name in named if name in rows]
    if not present or not rows[present].notna().any(axis=None):
        return None
    # The probabilities of a row add up to 1: a class that it does not name has the rest, which is 0.
    return rows.reindex(columns=named).fillna(0.0).where(rows[present].notna().any(axis=1), np.nan)


def positive_scores(rows: DataFrame, positive: str, labels: Sequence[str]) -> tuple[Floats, bool]:
    """Return (n,) scores, NaN where a row has none, and whether all of them are probabilities.

    `rows` has no unparsed outputs.
    """
    confidence = rows["confidence"].to_numpy(float)
    values = np.where(rows["predicted"] == positive, confidence, 1 - confidence)
    chances = chances_of(rows, labels)
    # A row has at most one of these, so that the order does not matter.
    for other in (rows["probability"], chances[f"p:{positive}"] if chances is not None else None):
        if other is not None:
            values = np.where(np.isnan(values), other.to_numpy(float), values)
    missing = np.isnan(values)
    values[missing] = rows["score"].to_numpy(float)[missing]
    return values, not (missing & ~np.isnan(values)).any()
