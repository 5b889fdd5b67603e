"""`simllm split`: split items into training, validation and test data, or into folds."""

from __future__ import annotations

import argparse
from pathlib import Path

from simllm.cli import metrics_option
from simllm.errors import InputError
from simllm.io import files, tables

HELP = "split items into training, validation and test data, or into folds"
EXAMPLES = """examples:
  simllm split items.csv --method holdout --test 0.3 --stratify gold,suite --seed 0 -o split.csv
  simllm split items.csv --method k-fold --folds 5 --group project -o folds.csv

The items are the rows of a CSV file or JSON lines. The output is CSV with the same columns and one more:
`split` (train, validation, test) for holdout, else `fold`, the number of the fold in which an item is tested.
"""
FORMATS: tuple[str, ...] = ()


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of `simllm split` to its parser."""
    command.add_argument("items", type=Path, metavar="FILE", help="CSV or JSON lines, a row an item")
    command.add_argument(
        "--method", default="holdout", choices=("holdout", "k-fold", "leave-one-out", "leave-one-group-out"),
        help="default: %(default)s",
    )  # fmt: skip
    command.add_argument("--test", type=float, default=0.2, help="share of test items; default: %(default)s")
    command.add_argument(
        "--validation", type=float, default=0.0, help="share of validation items; default: %(default)s"
    )
    command.add_argument("--folds", type=int, default=10, metavar="K", help="default: %(default)s")
    command.add_argument("--stratify", default="", metavar="A,B,…", help="columns to spread evenly")
    command.add_argument("--group", metavar="NAME", help="column; items with the same value stay together")
    command.add_argument("--seed", type=int, default=0, metavar="N", help="default: %(default)s")


def run(options: argparse.Namespace) -> None:
    """Run `simllm split` with the parsed options: write the items with their split or fold."""
    files.check_output(options.output, [options.items], options.overwrite)
    with metrics_option.require_eval_extra():
        from simllm.evaluation.classifiers.predictions import PLACE, read_table
        from simllm.evaluation.data_split import SplitPlan, split_items
    rows = read_table(options.items).drop(columns=PLACE)
    name = "split" if options.method == "holdout" else "fold"
    if name in rows:
        raise InputError(f"{options.items}: has a column {name} already")
    rows[name] = split_items(
        rows,
        SplitPlan(
            options.method,
            options.test,
            options.validation,
            options.folds,
            [column.strip() for column in options.stratify.split(",") if column.strip()],
            options.group,
            options.seed,
        ),
    )
    tables.show(rows.to_csv(index=False), options.output)
