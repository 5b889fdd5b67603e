"""Shared parts of the subcommands: common options, metrics, and result tables."""

from __future__ import annotations

import argparse
import contextlib
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from simllm.cli import results
from simllm.errors import InputError
from simllm.io import tables

if TYPE_CHECKING:
    from simllm.metrics.interface import Metric, ScoreFunction

CONTINUES = "the same command continues"
MODEL = ("FOLDER", "a model folder; default: the included one")
OUTPUT = ("FILE", "write to FILE, not to stdout")


@dataclass(frozen=True, kw_only=True)
class CommonOptions:
    """The options that most subcommands have; `format` and `output` are None if they are not given."""

    format: str | None = None
    output: Path | None = None
    overwrite: bool = False
    quiet: bool = False

    @property
    def has_bar(self) -> bool:
        """Whether a progress bar is shown."""
        return not self.quiet and sys.stderr.isatty()


@contextlib.contextmanager
def resumable() -> Iterator[None]:
    """Tell after Ctrl+C in a `with` block that the same command continues."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"({CONTINUES})") from None


@contextlib.contextmanager
def progress(options: CommonOptions, unit: str) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar while a `with` block works; the block calls it with the numbers of done and of all.

    Ctrl+C in the block ends a command that the same command continues.
    """
    from tqdm import tqdm

    with tqdm(unit=unit, disable=not options.has_bar) as bar, resumable():

        def advance(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield advance


Options = TypeVar("Options")


def take(cls: type[Options], values: Mapping[str, Any], **more: Any) -> Options:
    """Make a dataclass from `more`, and from the values of the same names as its fields."""
    return cls(**{one.name: values[one.name] for one in fields(cls) if one.name in values} | more)  # type: ignore[arg-type]


def defaults(cls: type) -> dict[str, Any]:
    """Return the defaults of a dataclass's fields by name."""
    return {one.name: one.default for one in fields(cls) if one.default is not MISSING}


def split_names(text: str) -> list[str]:
    """Split a list such as "a, b" at its commas; empty parts are left out."""
    return [part.strip() for part in text.split(",") if part.strip()]


def refuse(options: CommonOptions, names: Iterable[str], reason: str) -> None:
    """Refuse options that are not at their defaults; `reason` ends the message, as in "goes with --jsonl
    FILE".
    """
    known = defaults(type(options))
    for name in names:
        if getattr(options, name) != known[name]:
            raise InputError(f"--{name.replace('_', '-')} {reason}")


def add_options(
    command: argparse.ArgumentParser,
    formats: tuple[str, ...],
    model: tuple[str, str] | None,
    output: tuple[str, str] | None,
) -> None:
    """Add the options that most subcommands have, such as `--model`, `--output` and `--quiet`.

    `formats` are the values of `--format`; empty without this option. `model` and `output` are the
    placeholder and the help of `--model` and `-o`; None without the option.
    """
    if model:
        command.add_argument("--model", metavar=model[0], help=model[1])
    if formats:
        default = "text on a terminal, tsv in a pipe or file" if "tsv" in formats else formats[0]
        command.add_argument("-f", "--format", choices=formats, help=f"default: {default}")
    if output:
        command.add_argument("-o", "--output", type=_output_file, metavar=output[0], help=output[1])
    # A folder has no --overwrite: only folders that simllm wrote are ever replaced.
    if output == OUTPUT:
        command.add_argument("--overwrite", action="store_true", help="replace the file of -o if it exists")
    command.add_argument("-q", "--quiet", action="store_true", help="no warnings, no progress bar")


def _output_file(name: str) -> Path | None:
    """Return the path that `-o` names; None for `-`, which is standard output."""
    if not name:
        raise argparse.ArgumentTypeError("expected a file name, not an empty text")
    return None if name == "-" else Path(name)


Result = TypeVar("Result")


def add_metrics_option(command: argparse._ActionsContainer) -> None:
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


def add_columns_option(command: argparse.ArgumentParser) -> None:
    """Add the option `--columns`, the names of columns in files of ratings, to a command's parser."""
    command.add_argument(
        "--columns", metavar="R,C,X,…",
        help="the columns of reference, candidate and rating; more ratings are those of more raters",
    )  # fmt: skip


def rating_columns(value: str | None) -> list[str]:
    """Split the value of `--columns`; none for the default columns."""
    columns = [] if value is None else split_names(value)
    if value is not None and len(columns) < 3:
        message = "expected the columns of reference, candidate and one or more ratings"
        raise InputError(f"--columns {value}: {message}")
    if twice := next((name for name in columns if columns.count(name) > 1), None):
        raise InputError(f"--columns {value}: names {twice} twice")
    return columns


def add_report_option(command: argparse.ArgumentParser) -> None:
    """Add the option `--report` to the parser of a command that scores text pairs (see `report_option`)."""
    command.add_argument(
        "--report", type=Path, metavar="FILE", help="also write an HTML page on which to look at the pairs"
    )


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


def with_code_options(names: Iterable[str], as_published: bool, largest_tree: int | None) -> list[str]:
    """Turn options for metrics of code into arguments in the names: "rpsr" becomes "rpsr=5000".

    Names that have an argument, and names of other metrics, stay unchanged.
    """
    from simllm.metrics.table import AS_PUBLISHED, METRICS, NODES

    if largest_tree is not None and largest_tree < 1:
        raise InputError(f"--largest-tree {largest_tree}: expected 1 or more")
    arguments = {}
    for name, spec in METRICS.items():
        if as_published and spec.is_published:
            arguments[name] = AS_PUBLISHED
        elif largest_tree is not None and spec.argument == NODES:
            arguments[name] = str(largest_tree)
    return [f"{name}={arguments[name]}" if name in arguments else name for name in names]


def compute_for_each(
    metrics: Sequence[Metric], missing: dict[str, str], compute: Callable[[ScoreFunction], Result]
) -> Iterator[tuple[str, Result]]:
    """Call a function with the scoring function of each metric; yield name and result.

    Unavailable metrics are skipped and added to `missing`.
    """
    from simllm.metrics.interface import pair_scores

    return compute_with_each(metrics, missing, lambda metric: compute(partial(pair_scores, metric)))


def compute_with_each(
    metrics: Sequence[Metric], missing: dict[str, str], compute: Callable[[Metric], Result]
) -> Iterator[tuple[str, Result]]:
    """Call a function with each metric, as `compute_for_each` does."""
    from simllm.metrics.interface import UnavailableError

    for metric in metrics:
        try:
            yield metric.name, compute(metric)
        except UnavailableError as error:
            missing[metric.name] = str(error)


def write_table(
    table: tables.Table, missing: dict[str, str], options: CommonOptions, messages: Sequence[str] = ()
) -> None:
    """Write a table of results with its warnings, and warn about unavailable metrics."""
    for name, remedy in missing.items():
        warnings.warn(f"{name} is left out: {remedy}", stacklevel=2)
    left_out = {f"without {name}": remedy for name, remedy in missing.items()}
    summary = {**table.summary, **left_out, **results.tell(messages)}
    tables.write(replace(table, summary=summary), options.format, options.output)


def print_mean(
    options: CommonOptions, format_: str, pairs: int, mean: tuple[str, float], signature: str
) -> None:
    """Print mean and signature to standard error, because a TSV table has no place for them.

    `mean` is the name of the mean, such as "mean raw score", and its value.
    """
    if format_ == "tsv" and not options.quiet:
        name, value = mean
        print(
            f"simllm: {tables.format_count(pairs, 'pair')}, {name} {value:.4f}, {signature}", file=sys.stderr
        )
