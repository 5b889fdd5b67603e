"""The option `--metrics`, and tables with a row for each chosen metric."""

from __future__ import annotations

import argparse
import contextlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from simllm.errors import InputError
from simllm.io import tables

if TYPE_CHECKING:
    from simllm.metrics.protocol import Metric, ScoreFunction

Result = TypeVar("Result")


def add_option(command: argparse.ArgumentParser) -> None:
    """Add the option `--metrics`."""
    command.add_argument("--metrics", metavar="A,B,…", help="names, or name=argument; default: all of them")


def chosen_names(value: str | None) -> list[str]:
    """Return the names in the value of `--metrics`, or all names; raise InputError for an unknown name."""
    from simllm.metrics import registry

    chosen = list(registry.names()) if value is None else [name.strip() for name in value.split(",")]
    registry.check_names(chosen)
    return chosen


def compute_for_each(
    metrics: Sequence[Metric], missing: dict[str, str], compute: Callable[[ScoreFunction], Result]
) -> Iterator[tuple[str, Result]]:
    """Yield the name of each metric and the result of `compute`.

    Args:
        metrics: The metrics.
        missing: Gets the name and the remedy of each metric that is unavailable.
        compute: Takes the scoring function of a metric.
    """
    from simllm.metrics.protocol import pair_scores
    from simllm.metrics.text import UnavailableError

    for metric in metrics:
        try:
            yield metric.name, compute(partial(pair_scores, metric))
        except UnavailableError as error:
            missing[metric.name] = str(error)


def write_table(table: tables.Table, missing: dict[str, str], options: argparse.Namespace) -> None:
    """Write the table; warn about missing metrics, and list them in the summary."""
    for name, remedy in missing.items():
        warnings.warn(f"{name} is left out: {remedy}", stacklevel=2)
    left_out = {f"without {name}": remedy for name, remedy in missing.items()}
    tables.write(replace(table, summary={**table.summary, **left_out}), options.format, options.output)


@contextlib.contextmanager
def require_eval_extra() -> Iterator[None]:
    """Turn a failed import into an InputError that asks to install the extra `eval`."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise InputError(f"{error.name} is not installed; install simllm with its extra `eval`") from None
