"""`simllm score --jsonl 'PATTERN' -o FOLDER`: score several files, with a table for each."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simllm.cli import shared_options
from simllm.errors import InputError
from simllm.io import tables

if TYPE_CHECKING:
    from simllm.cli.score_options import Options

_SHOWN = 5  # warnings about single tables


def run(options: Options, sources: list[Path]) -> None:
    """Score several files of JSON lines, write a table for each, and print a table with the mean score of
    each.
    """
    if options.output is None:
        raise InputError("expected -o FOLDER: each of the files gets a table there")
    if options.actors is not None and options.actors < 1:
        raise InputError(f"--actors {options.actors}: expected a whole number from 1")
    form = options.format or "tsv"
    if form == "text":
        raise InputError("--format text: several files give tsv or json")
    from simllm.analysis import sharded_scoring
    from simllm.analysis.sharded_scoring import RayScoring, ShardSettings

    engine = sharded_scoring.score_here
    if options.engine == "ray":
        engine = RayScoring(options.address, options.actors)
    frequencies = None if options.frequencies is None else str(options.frequencies)
    given = {"frequencies": frequencies, "scale": options.shown_scale, "format": form}
    settings = shared_options.take(ShardSettings, vars(options) | given)
    with shared_options.progress(options, " files") as progress:
        summary = sharded_scoring.score_shards(sources, options.output, settings, engine, progress)
    told = [f"{name}: {text}" for name, row in summary["tables"].items() for text in row.get("warnings", [])]
    more = [f"and {len(told) - _SHOWN} more, in summary.json"] if told[_SHOWN:] else []
    for message in (*told[:_SHOWN], *more):
        warnings.warn(message, stacklevel=2)
    table, shown = _table_of_files(summary["tables"]), tables.format_for(None, None)
    tables.write(table, shown, None)
    facts = table.summary
    mean = f"mean {options.shown_scale} score", facts["mean"]
    shared_options.print_mean(options, shown, facts["pairs"], mean, facts["signature"])


def _table_of_files(scored: dict[str, Any]) -> tables.Table:
    """Make a table with the pairs and the mean score of each file, from the facts about each output file."""
    rows = [[name, row["pairs"], row["mean"]] for name, row in scored.items()]
    # The mean of the files' means would weigh a pair in a small file more.
    pairs = sum(count for _, count, _ in rows)
    facts = {"pairs": pairs, "mean": sum(count * mean for _, count, mean in rows) / pairs}
    signatures = {row["signature"] for row in scored.values()}
    return tables.Table(("file", "pairs", "mean"), rows, {**facts, "signature": " ".join(sorted(signatures))})
