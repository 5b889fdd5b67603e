"""`simllm score --jsonl 'PATTERN' -o FOLDER`: score many files, and write a table for each file."""

from __future__ import annotations

import glob
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simllm.cli import shared_options
from simllm.cli.results import print_mean
from simllm.errors import InputError
from simllm.io import tables

if TYPE_CHECKING:
    from simllm.cli.score import Options

_SHOWN = 5  # warnings about single tables


def matching_files(pattern: Path | None) -> list[Path]:
    """Find the files that the value of `--jsonl` matches, sorted; none if the value is not a glob pattern."""
    # A file may be called "a[1].jsonl".
    if pattern is None or pattern.exists() or not glob.has_magic(str(pattern)):
        return []
    matches = sorted(map(Path, glob.glob(str(pattern), recursive=True)))  # noqa: PTH207 (also absolute patterns)
    found = [path for path in matches if not path.is_dir()]
    if not found:
        raise InputError(f"{pattern}: no file matches")
    return found


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
    table, shown = _table(summary["tables"]), tables.format_for(None, None)
    tables.write(table, shown, None)
    facts = table.summary
    mean = f"mean {options.shown_scale} score", facts["mean"]
    print_mean(options, shown, facts["pairs"], mean, facts["signature"])


def _table(scored: dict[str, Any]) -> tables.Table:
    """Make a table with the pairs and the mean score of each file, from the facts about each output file."""
    rows = [[name, row["pairs"], row["mean"]] for name, row in scored.items()]
    # The mean of the files' means would weigh a pair in a small file more.
    pairs = sum(count for _, count, _ in rows)
    facts = {"pairs": pairs, "mean": sum(count * mean for _, count, mean in rows) / pairs}
    signatures = {row["signature"] for row in scored.values()}
    return tables.Table(("file", "pairs", "mean"), rows, {**facts, "signature": " ".join(sorted(signatures))})
