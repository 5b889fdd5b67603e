"""`simllm repair run`: let a language model repair programs or summarize code, and judge each reply."""

from __future__ import annotations

import argparse
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simllm.cli import model_options, shared_options
from simllm.cli.shared_options import CommonOptions
from simllm.errors import InputError
from simllm.io import packages, tables
from simllm.io.tables import FORMATS as FORMATS
from simllm.repair import RunOptions

MODEL = ("NAME", "the name of the model at the endpoint")
OUTPUT = ("DIR", "folder of the run")
EXAMPLES = """examples:
  simllm repair run items.jsonl --base-url http://localhost:8000/v1 --model M --strategy cref -o runs/cref
  simllm repair run items.jsonl --base-url http://localhost:8000/v1 --model M --strategy single
    --with guidance,tests --parallel 8 --rate 60 -o runs/single
  simllm repair run items.jsonl --replay runs/cref -o again
The API key comes from the environment variable OPENAI_API_KEY. The exit status is 1 if replies were lost; the
same command then asks for them alone.
"""

_COUNTED = ("empty", "without code", "cut off", "beyond the context", "ambiguous")


@dataclass(frozen=True, kw_only=True)
class Options(CommonOptions, RunOptions):
    """The options of `simllm repair run`."""

    items: Path
    parts: str | None = None
    rpsr: str = "mean"


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of `simllm repair run` to its parser."""
    command.add_argument("items", type=Path, metavar="FILE", help="JSON lines with the items")
    model_options.add_address(command)
    command.add_argument(
        "--strategy", metavar="NAME", help="single, multi-regenerate, chatrepair or cref (default)"
    )
    command.add_argument(
        "--with", dest="parts", metavar="A,B,…", help="what single adds: any of guidance,solution,tests"
    )
    command.add_argument("--attempts", type=int, metavar="N", help="attempts at each item; default: 5")
    command.add_argument("--rounds", type=int, metavar="N", help="most rounds; default: as in the strategy")
    command.add_argument(
        "--prompts", type=Path, metavar="DIR", help="own templates (.j2), strategies.json; or cref-paper"
    )
    command.add_argument(
        "--trees",
        metavar="NAME",
        help="tree-sitter (default) or libclang: for the size of patches",
    )
    command.add_argument(
        "--show-output",
        dest="shows_output",
        action="store_true",
        default=None,
        help="show the model what failed tests printed",
    )  # fmt: skip
    command.add_argument(
        "--compare", metavar="HOW", help="lines (default), tokens, exact or float:1e-6: comparison of outputs"
    )
    command.add_argument("--judge", metavar="METRIC", help="the items are summaries; this metric judges them")
    command.add_argument("--bar", type=float, metavar="X", help="with --judge: the score of a good summary")
    model_options.add_sampling(command)
    command.add_argument("--parallel", type=int, metavar="N", help="attempts at the same time")
    model_options.add_limits(command)
    command.add_argument("--replay", type=Path, metavar="RUN", help="use the replies of this run: no network")
    command.add_argument("--unsafe", action="store_true", help="run programs without a sandbox")
    add_rpsr_option(command)


def add_rpsr_option(command: argparse.ArgumentParser) -> None:
    """Add the option `--rpsr`, the definition of RPSR, to a command's parser."""
    command.add_argument(
        "--rpsr", choices=("mean", "published"),
        help="mean of accepted replies (default), or the quotient of sums over all replies, as published",
    )  # fmt: skip


def run(options: Options) -> int:
    """Run `simllm repair run`: write a folder, and print the main figures.

    The exit status is 0 if all attempts are finished, else 1.
    """
    if options.output is None:
        raise InputError("expected -o DIR, the folder of the run")
    with packages.require_repair_extra():
        from simllm.repair.experiment import run_with
    parts = None if options.parts is None else options.parts.split(",")
    given = shared_options.take(RunOptions, vars(options) | {"parts": parts})
    with shared_options.progress(options, " attempts") as progress:
        summary = run_with(options.items, options.output, given, progress)
    for warning in summary["warnings"]:
        warnings.warn(tables.on_one_line(warning), stacklevel=2)
    tables.write(_table(summary, options.rpsr), options.format, None)
    # The table has no place for a reason, and --quiet must not hide it: the run needs its user.
    if not summary["complete"]:
        print(
            f"simllm: {summary['open attempts']:,} attempts are open "
            f"({tables.on_one_line(summary['first open attempt'])}); {shared_options.CONTINUES}",
            file=sys.stderr,
        )
    return 0 if summary["complete"] else 1


def _table(summary: dict[str, Any], rpsr: str) -> tables.Table:
    """Make a table of a run's main figures, with a row for all items and a row for each group of items."""
    from simllm.repair.results import RPSR

    tops = list(summary["figures"]["TOP"])
    columns = ("items", "n", "AVG", *(f"TOP-{k}" for k in tops), RPSR[rpsr], "requests", "cost")
    rows = []
    # A data set with tiers has too many groups for a terminal.
    parts = summary["tiers"] or summary["groups"]
    for name, found in [("all", summary["figures"]), *parts.items()]:
        rates = [found["AVG"], *(found["TOP"][k] for k in tops)]
        rows.append([name, found["items"], *rates, found[RPSR[rpsr]], found["requests"], found["cost"]])
    rest = {"complete": "yes"} if summary["complete"] else {"open attempts": summary["open attempts"]}
    replies = summary["figures"]["replies"]
    counts = {f"replies {kind}": count for kind, count in replies.items() if kind in _COUNTED and count}
    return tables.Table(columns, rows, {"run": summary["run"], **rest, **counts})
