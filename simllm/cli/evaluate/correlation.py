"""`simllm evaluate --ratings FILE`: correlate metrics with human ratings."""

from __future__ import annotations

import argparse
from pathlib import Path

from simllm.cli.evaluate import options
from simllm.errors import InputError
from simllm.io import files
from simllm.io.tables import Table


def add(evaluate: argparse.ArgumentParser) -> None:
    """Add the options."""
    evaluate.add_argument(
        "--ratings", type=Path, metavar="FILE", help="JSON lines with reference, candidate and rating"
    )
    options.add_metrics(evaluate)
    evaluate.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    if options.ratings is None:
        raise InputError("expected --ratings FILE, or a command (see simllm evaluate --help)")
    files.check_output(options.output, [options.ratings], options.overwrite)
    with options.eval_extra():
        from simllm.evaluation.human_correlation import correlate
    result = correlate(options.ratings, options.metric_names(options.metrics), options.model)
    if not result.rows:
        raise InputError("; ".join(f"{name}: {remedy}" for name, remedy in result.missing.items()))
    table = Table(
        columns=("metric", "spearman", "low", "high", "p_value"),
        rows=[(row.metric, row.spearman, row.low, row.high, row.p_value) for row in result.rows],
        summary={
            "ratings": options.ratings.name,
            "pairs": result.rows[0].n,
            "interval": "95% bootstrap",
            **{f"signature of {row.metric}": row.signature for row in result.rows},
        },
    )
    options.write(table, result.missing, options)
