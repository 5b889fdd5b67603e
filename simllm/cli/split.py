"""`simllm split`: split the rows of a table into training, validation and test data, or into folds."""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from simllm.cli.shared_options import CommonOptions, split_names
from simllm.errors import InputError
from simllm.io import output_file, packages, tables

if TYPE_CHECKING:
    from pandas import DataFrame

EXAMPLES = """examples:
  simllm split items.csv --method holdout --test 0.3 --stratify gold,suite --seed 0 -o split.csv
  simllm split items.csv --method k-fold --folds 5 --group project -o folds.csv

The items are the rows of a CSV file or JSON lines. The output is CSV, or JSON lines if the name of -o ends in
.jsonl, with texts as values. It has the same columns and one more:
`split` (train, validation, test) for holdout, else `fold`, the number of the fold in which an item is tested.
For each fold, train on the items of the other folds, and give the predictions for its items the same column
`fold`, so that `simllm evaluate classifiers` can average over the folds.
"""
MODEL = None
FORMATS: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Options(CommonOptions):
    """The options of `simllm split`."""

    items: Path
    method: str = "holdout"
    test: float | None = None
    validation: float | None = None
    folds: int | None = None
    stratify: str = ""
    group: str | None = None
    seed: int = 0


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of `simllm split` to its parser."""
    command.add_argument("items", type=Path, metavar="FILE", help="CSV or JSON lines, a row an item")
    command.add_argument(
        "--method", choices=("holdout", "k-fold", "leave-one-out", "leave-one-group-out"),
        help="default: %(default)s",
    )  # fmt: skip
    command.add_argument(
        "--test",
        type=float,
        metavar="X",
        help="holdout: share of test items (with --group: of groups); default: 0.2",
    )
    command.add_argument(
        "--validation", type=float, metavar="X", help="holdout: share of validation items; default: 0"
    )
    command.add_argument("--folds", type=int, metavar="K", help="k-fold: number of folds; default: 10")
    command.add_argument("--stratify", metavar="A,B,…", help="columns to spread evenly")
    command.add_argument("--group", metavar="NAME", help="column; items with the same value stay together")
    command.add_argument("--seed", type=int, metavar="N", help="default: %(default)s")


def run(options: Options) -> None:
    """Run `simllm split`: write the rows with a new column, `split` or `fold` (a number from 1)."""
    output_file.check_output(options.output, options.overwrite)
    if options.method != "holdout" and (options.test is not None or options.validation is not None):
        raise InputError(f"--test and --validation go with --method holdout, not {options.method}")
    if options.method != "k-fold" and options.folds is not None:
        raise InputError(f"--folds goes with --method k-fold, not {options.method}")
    with packages.require_eval_extra():
        from simllm.evaluation.classifiers.predictions import PLACE, read_table
        from simllm.evaluation.split import SplitPlan, find_warnings, split_items
    # The place of a row in the file, for error messages, is not the user's column.
    rows = read_table(options.items).drop(columns=PLACE)
    name = "split" if options.method == "holdout" else "fold"
    if name in rows:
        raise InputError(f"{options.items}: has a column {name} already")
    plan = SplitPlan(
        options.method,
        0.2 if options.test is None else options.test,
        options.validation or 0.0,
        10 if options.folds is None else options.folds,
        split_names(options.stratify),
        options.group,
        options.seed,
    )
    parts = split_items(rows, plan)
    for sentence in find_warnings(rows, parts, plan):
        warnings.warn(sentence, stacklevel=2)
    rows[name] = parts
    is_json = options.output is not None and options.output.suffix.lower() == ".jsonl"
    tables.show(_json_lines(rows) if is_json else rows.to_csv(index=False), options.output)
    if not options.quiet:
        sizes = rows[name].value_counts(sort=False)
        shown = ", ".join(f"{part} {size:,}" for part, size in sizes.items()) if len(sizes) <= 20 else ""
        print(f"simllm: {len(rows):,} items: {shown or f'{len(sizes):,} folds'}", file=sys.stderr)


def _json_lines(rows: DataFrame) -> Iterator[str]:
    for row in rows.to_dict("records"):
        known = {name: value for name, value in row.items() if value is not None and value == value}
        yield json.dumps(known, ensure_ascii=False) + "\n"
