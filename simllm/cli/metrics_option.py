"""The option `--metrics`, and helpers for commands that evaluate several metrics."""

from __future__ import annotations

import argparse
import contextlib
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from simllm.errors import InputError
from simllm.io import tables

if TYPE_CHECKING:
    from simllm.metrics.protocol import Metric, ScoreFunction

Result = TypeVar("Result")


def add_option(command: argparse._ActionsContainer) -> None:
    """Add the option `--metrics`, a comma-separated list of metric names, to a command's parser."""
    command.add_argument("--metrics", metavar="A,B,…", help="names, or name=argument; default: all of them")


def chosen_names(value: str | None) -> list[str]:
    """Split the value of the option `--metrics` into metric names.

    Args:
        value: Names separated by commas; None means all metrics.

    Raises:
        InputError: A name is unknown.
    """
    from simllm.metrics import registry

    chosen = list(registry.names()) if value is None else [name.strip() for name in value.split(",")]
    registry.check_names(chosen)
    return chosen


def add_code_options(command: argparse.ArgumentParser) -> None:
    """Add the options of metrics for code to the parser of a command."""
    command.add_argument(
        "--as-published", action="store_true",
        help="compute the metrics of Sheikhaei et al. as their code does, with its defects (java and python)",
    )  # fmt: skip
    command.add_argument(
        "--largest-tree", type=int, metavar="NODES",
        help="for tree-similarity, rps and rpsr: larger syntax trees get no score; default: 3000",
    )  # fmt: skip


def with_code_options(names: Iterable[str], options: argparse.Namespace) -> list[str]:
    """Turn the options of metrics for code into arguments of the metrics that have none.

    Args:
        names: The names of the metrics.
        options: The parsed options; `as_published` and `largest_tree` are read.

    Returns:
        The names, such as "lemod=as-published" or "rpsr=5000" in place of "lemod" and "rpsr".
    """
    from simllm.metrics.code import AS_PUBLISHED, CODE_METRICS, NODES, PUBLISHED

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
    """Call a function for each metric, and skip the metrics that are not available.

    A metric is not available if, for example, its package is not installed.

    Args:
        metrics: The metrics.
        missing: A dict that this function fills. It gets the name of each unavailable metric, and advice on
            how to make the metric available.
        compute: A function that takes a metric's scoring function and returns a result of any type.

    Yields:
        The name of an available metric, and the result of `compute`.
    """
    from simllm.metrics.protocol import pair_scores
    from simllm.metrics.text import UnavailableError

    for metric in metrics:
        try:
            yield metric.name, compute(partial(pair_scores, metric))
        except UnavailableError as error:
            missing[metric.name] = str(error)


def write_table(table: tables.Table, missing: dict[str, str], options: argparse.Namespace) -> None:
    """Write a table of results, and warn about unavailable metrics.

    Args:
        table: The results of the available metrics.
        missing: Advice on each unavailable metric, by name. It is also added to the table's summary.
        options: The parsed options; `format` and `output` say how and where to write the table.
    """
    for name, remedy in missing.items():
        warnings.warn(f"{name} is left out: {remedy}", stacklevel=2)
    left_out = {f"without {name}": remedy for name, remedy in missing.items()}
    tables.write(replace(table, summary={**table.summary, **left_out}), options.format, options.output)


def require_eval_extra() -> contextlib.AbstractContextManager[None]:
    """Tell the user to install the extra `eval` if an import inside a `with` block fails."""
    return _require_extra("eval")


def require_code_extra() -> contextlib.AbstractContextManager[None]:
    """Tell the user to install the extra `code` if an import inside a `with` block fails."""
    return _require_extra("code")


def require_repair_extra() -> contextlib.AbstractContextManager[None]:
    """Tell the user to install the extra `repair` if an import inside a `with` block fails."""
    return _require_extra("repair")


@contextlib.contextmanager
def _require_extra(extra: str) -> Iterator[None]:
    """Tell the user what to install if an import inside a `with` block fails.

    Raises:
        InputError: A package is missing. The message asks to install simllm with the extra.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise InputError(f"{error.name} is not installed; install simllm with its extra `{extra}`") from None
