"""The option `--metrics`, and tables of the metrics that were chosen."""

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
    from simllm.metrics.protocol import Metric, Score

Result = TypeVar("Result")


def add_option(command: argparse.ArgumentParser) -> None:
    """Add the option that names metrics."""
    command.add_argument("--metrics", metavar="A,B,…", help="names, or name=argument; default: all of them")


def names(given: str | None) -> list[str]:
    """Return the metrics named by the option, or all; raise InputError for an unknown name."""
    from simllm.metrics import registry

    chosen = list(registry.names()) if given is None else [name.strip() for name in given.split(",")]
    registry.check(chosen)
    return chosen


def of_each(
    found: Sequence[Metric], missing: dict[str, str], compute: Callable[[Score], Result]
) -> Iterator[tuple[str, Result]]:
    """Yield the name of each metric and the result of `compute`; put metrics without scores in `missing`."""
    from simllm.metrics.protocol import pair_scores
    from simllm.metrics.text import UnavailableError

    for metric in found:
        try:
            yield metric.name, compute(partial(pair_scores, metric))
        except UnavailableError as error:
            missing[metric.name] = str(error)


def write(table: tables.Table, missing: dict[str, str], options: argparse.Namespace) -> None:
    """Write the table; warn about missing metrics, and list them in the summary."""
    for name, remedy in missing.items():
        warnings.warn(f"{name} is left out: {remedy}", stacklevel=2)
    left_out = {f"without {name}": remedy for name, remedy in missing.items()}
    tables.write(replace(table, summary={**table.summary, **left_out}), options.format, options.output)


@contextlib.contextmanager
def eval_extra() -> Iterator[None]:
    """Turn a failing import into InputError that names the extra to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise InputError(f"{error.name} is not installed; install simllm with its extra `eval`") from None
