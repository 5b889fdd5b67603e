"""`simllm score --jsonl 'PATTERN' -o FOLDER`: score many files, and write a table for each file."""

from __future__ import annotations

import argparse
import glob
import sys
import warnings
from pathlib import Path
from typing import Any

from tqdm import tqdm

from simllm.cli import shared_options
from simllm.cli.results import print_mean
from simllm.errors import InputError
from simllm.io import tables

# Options of `simllm score` that cannot be used with several files, with their defaults.
_ONE_FILE_ONLY: dict[str, Any] = {
    "candidates": None, "references": None, "metrics": None, "resume": False, "overwrite": False,
    "report": None, "group_by": None,
}  # fmt: skip
_SHOWN = 5  # warnings about single tables
ENGINES = ("local", "ray")
_RAY_ONLY: dict[str, Any] = {"address": None, "actors": None}  # options of Ray clusters, with their defaults


def add_options(score: argparse.ArgumentParser) -> None:
    """Add the options for scoring many files to the parser of `simllm score`."""
    score.add_argument(
        "--engine", choices=ENGINES, default="local", help="for many files: this process, or a Ray cluster"
    )
    score.add_argument("--address", metavar="ADDRESS", help="of the Ray cluster, or auto; default: start one")
    score.add_argument("--actors", type=int, metavar="N", help="of Ray; default: one on each processor")


def matching_files(pattern: Path | None) -> list[Path] | None:
    """Find the files that the value of `--jsonl` matches, sorted; None if the value is not a glob pattern."""
    # A file may be called "a[1].jsonl".
    if pattern is None or pattern.exists() or not glob.has_magic(str(pattern)):
        return None
    matches = sorted(map(Path, glob.glob(str(pattern), recursive=True)))  # noqa: PTH207 (also absolute patterns)
    found = [path for path in matches if not path.is_dir()]
    if not found:
        raise InputError(f"{pattern}: no file matches")
    return found


def refuse_engine_options(options: argparse.Namespace) -> None:
    """Refuse options that have an effect only on several files."""
    unused = {"engine": ENGINES[0], **_RAY_ONLY}
    shared_options.refuse(options, unused, "goes with several files: --jsonl 'PATTERN'")


def run(options: argparse.Namespace, sources: list[Path], scale: str) -> None:
    """Score several files of JSON lines, write a table for each, and print a table with the mean score of
    each.
    """
    if options.texts:
        raise InputError("TEXT does not go with several files in --jsonl")
    shared_options.refuse(options, _ONE_FILE_ONLY, "does not go with several files in --jsonl")
    if options.output is None:
        raise InputError("expected -o FOLDER: each of the files gets a table there")
    if options.actors is not None and options.actors < 1:
        raise InputError(f"--actors {options.actors}: expected a whole number from 1")
    if options.engine == "local":
        shared_options.refuse(options, _RAY_ONLY, "goes with --engine ray")
    form = options.format or "tsv"
    if form == "text":
        raise InputError("--format text: several files give tsv or json")
    from simllm.analysis import sharded_scoring
    from simllm.analysis.sharded_scoring import RayScoring

    engine = sharded_scoring.score_here
    if options.engine == "ray":
        engine = RayScoring(options.address, options.actors)
    settings = sharded_scoring.ShardSettings(
        model=options.model,
        pooling=options.pooling,
        similarity=options.similarity,
        mode=options.mode,
        on_long=options.on_long,
        frequencies=None if options.frequencies is None else str(options.frequencies),
        candidate_field=options.candidate_field,
        reference_field=options.reference_field,
        id_field=options.id_field,
        scale=scale,
        format=form,
    )
    with tqdm(unit=" files", disable=options.quiet or not sys.stderr.isatty()) as bar:

        def progress(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        try:
            summary = sharded_scoring.score_shards(sources, options.output, settings, engine, progress)
        except KeyboardInterrupt:
            raise KeyboardInterrupt("(the same command continues)") from None
    told = [f"{name}: {text}" for name, row in summary["tables"].items() for text in row.get("warnings", [])]
    for message in [
        *told[:_SHOWN],
        *([f"and {len(told) - _SHOWN} more, in summary.json"] if told[_SHOWN:] else []),
    ]:
        warnings.warn(message, stacklevel=2)
    table, shown = _table(summary["tables"]), tables.format_for(None, None)
    tables.write(table, shown, None)
    facts = table.summary
    print_mean(options, shown, facts["pairs"], (f"mean {scale} score", facts["mean"]), facts["signature"])


def _table(scored: dict[str, Any]) -> tables.Table:
    """Make a table with the pairs and the mean score of each file, from the facts about each output file."""
    rows = [[name, row["pairs"], row["mean"]] for name, row in scored.items()]
    # The mean of the files' means would weigh a pair in a small file more.
    pairs = sum(count for _, count, _ in rows)
    facts = {"pairs": pairs, "mean": sum(count * mean for _, count, mean in rows) / pairs}
    signatures = {row["signature"] for row in scored.values()}
    return tables.Table(("file", "pairs", "mean"), rows, {**facts, "signature": " ".join(sorted(signatures))})
