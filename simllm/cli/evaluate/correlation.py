"""`simllm evaluate correlation`: correlate the scores of metrics with human ratings."""

from __future__ import annotations

import argparse
from pathlib import Path

from simllm.cli import metrics_option
from simllm.errors import InputError
from simllm.io import files
from simllm.io.tables import FORMATS as FORMATS
from simllm.io.tables import Table

HELP = "correlate metrics with human ratings (Spearman)"
EXAMPLES = """examples:
  simllm evaluate correlation --ratings haque2022.jsonl
  simllm evaluate correlation --ratings haque2022.jsonl --metrics simllm,bleu --model my/model -f json
"""


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of `simllm evaluate correlation` to its parser."""
    command.add_argument(
        "--ratings",
        type=Path,
        required=True,
        metavar="FILE",
        help="JSON lines with reference, candidate and rating",
    )
    metrics_option.add_option(command)


def run(options: argparse.Namespace) -> None:
    """Run `simllm evaluate correlation` with the parsed options: write a table of correlations."""
    files.check_output(options.output, [options.ratings], options.overwrite)
    with metrics_option.require_eval_extra():
        from simllm.evaluation.human_correlation import correlate
    result = correlate(options.ratings, metrics_option.chosen_names(options.metrics), options.model)
    if not result.rows:
        raise InputError("; ".join(f"{name}: {remedy}" for name, remedy in result.missing.items()))
    table = Table(
        columns=("metric", "spearman", "low", "high", "p_value"),
        rows=[(row.metric, row.spearman, row.low, row.high, row.p_value) for row in result.rows],
        summary={
            "ratings": options.ratings.name,
            "pairs": result.rows[0].n,
            "interval": "95% bootstrap",
            "p": "two-sided permutation test",
            **{f"signature of {row.metric}": row.signature for row in result.rows},
        },
    )
    metrics_option.write_table(table, result.missing, options)
