"""The option `--metrics`, and helpers for commands that evaluate several metrics."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from simllm.cli import result_warnings
from simllm.errors import InputError
from simllm.io import tables

if TYPE_CHECKING:
    from simllm.metrics.metric_interface import Metric, ScoreFunction

Result = TypeVar("Result")


def add_option(command: argparse._ActionsContainer) -> None:
    """Add the option `--metrics`, a comma-separated list of metric names, to a command's parser."""
    command.add_argument("--metrics", metavar="A,B,…", help="names, or name=argument; default: all of them")


def chosen_names(value: str | None, model: str | None = None) -> list[str]:
    """Split the value of `--metrics` into names, some with an argument ("word-vectors=corpus.jsonl"); None
    gives all.

    A `model` that none of the metrics uses is an error.
    """
    from simllm.metrics import registry

    # An empty value is not None: it has one empty name, which `check_names` refuses.
    chosen = list(registry.names()) if value is None else [name.strip() for name in value.split(",")]
    registry.check_names(chosen)
    if model is not None and not any(map(registry.uses_model, chosen)):
        raise InputError("--model goes with simllm or simllm-same in --metrics, without =FOLDER")
    return chosen


def add_code_options(command: argparse.ArgumentParser) -> None:
    """Add `--as-published` and `--largest-tree`, options for metrics of code, to a command's parser."""
    command.add_argument(
        "--as-published", action="store_true",
        help="compute the metrics of Sheikhaei et al. as their code does, with its defects (java and python)",
    )  # fmt: skip
    command.add_argument(
        "--largest-tree", type=int, metavar="NODES",
        help="for tree-similarity, rps and rpsr: larger syntax trees get no score; default: 3000",
    )  # fmt: skip


def with_code_options(names: Iterable[str], options: argparse.Namespace) -> list[str]:
    """Turn options for metrics of code into arguments in the names: "rpsr" becomes "rpsr=5000".

    Names that have an argument, and names of other metrics, stay unchanged.
    """
    from simllm.metrics.code.built_in_code_metrics import AS_PUBLISHED, CODE_METRICS, NODES, PUBLISHED

    largest = options.largest_tree
    if largest is not None and largest < 1:
        raise InputError(f"--largest-tree {largest}: expected 1 or more")
    arguments = dict.fromkeys(PUBLISHED, AS_PUBLISHED) if options.as_published else {}
    if largest is not None:
        arguments |= {name: str(largest) for name, kind in CODE_METRICS.items() if kind.argument == NODES}
    return [f"{name}={arguments[name]}" if name in arguments else name for name in names]


def compute_for_each(
    metrics: Sequence[Metric], missing: dict[str, str], compute: Callable[[ScoreFunction], Result]
) -> Iterator[tuple[str, Result]]:
    """Call a function with the scoring function of each metric; yield name and result.

    Unavailable metrics are skipped and added to `missing`.
    """
    from simllm.metrics.metric_interface import UnavailableError, pair_scores

    for metric in metrics:
        try:
            yield metric.name, compute(partial(pair_scores, metric))
        except UnavailableError as error:
            missing[metric.name] = str(error)


def write_table(
    table: tables.Table, missing: dict[str, str], options: argparse.Namespace, messages: Sequence[str] = ()
) -> None:
    """Write a table of results with its warnings, and warn about unavailable metrics."""
    for name, remedy in missing.items():
        warnings.warn(f"{name} is left out: {remedy}", stacklevel=2)
    left_out = {f"without {name}": remedy for name, remedy in missing.items()}
    summary = {**table.summary, **left_out, **result_warnings.tell(messages)}
    tables.write(replace(table, summary=summary), options.format, options.output)
