"""`simllm evaluate correlation`: correlate the scores of metrics with human ratings."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from simllm.cli import results, shared_options
from simllm.cli.shared_options import CommonOptions
from simllm.errors import InputError
from simllm.io import output_file, packages
from simllm.io.tables import FORMATS as FORMATS
from simllm.io.tables import Table

if TYPE_CHECKING:
    from simllm.evaluation.correlation import MetricCorrelation, SystemCorrelation

EXAMPLES = """examples:
  simllm evaluate correlation --ratings haque2022.jsonl
  simllm evaluate correlation --ratings haque2022.jsonl --metrics simllm,bleu --model my/model -f json
  simllm evaluate correlation --ratings tested.jsonl --metrics lemod,rpsr,codebleu --level system
"""


@dataclass(frozen=True, kw_only=True)
class Options(CommonOptions):
    """The options of `simllm evaluate correlation`."""

    ratings: Path
    level: str = "pair"
    metrics: str | None = None
    model: str | None = None


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of `simllm evaluate correlation` to its parser."""
    command.add_argument(
        "--ratings",
        type=Path,
        required=True,
        metavar="FILE",
        help="JSON lines with reference, candidate and rating, or with passed for code",
    )
    command.add_argument(
        "--level", choices=("pair", "system"),
        help="correlate the scores of pairs (the default), or the mean scores of systems",
    )  # fmt: skip
    shared_options.add_metrics_option(command)


def run(options: Options) -> None:
    """Run `simllm evaluate correlation`: write a table of correlations with human ratings, a row for each
    metric.
    """
    output_file.check_output(options.output, options.overwrite)
    with packages.require_eval_extra():
        from simllm.evaluation import correlation
    names = shared_options.chosen_names(options.metrics, options.model)
    with results.collected() as messages:
        if options.level == "system":
            rows, missing = correlation.correlate_systems(options.ratings, names, options.model)
            table = _system_table(rows)
        else:
            found = correlation.correlate(options.ratings, names, options.model)
            missing, table = found.missing, _pair_table(found.rows)
    # Without a single metric there is no table, so that the advice becomes the error.
    if not table.rows:
        raise InputError("; ".join(f"{name}: {remedy}" for name, remedy in missing.items()))
    shared_options.write_table(
        replace(table, summary={"ratings": options.ratings.name, **table.summary}), missing, options, messages
    )


def _pair_table(rows: Sequence[MetricCorrelation]) -> Table:
    """Make the table of correlations with the ratings of pairs; it has an AUC if all ratings are 0 or 1."""
    has_auc = any(row.auc is not None for row in rows)
    return Table(
        columns=("metric", "spearman", "low", "high", "p_value", *(["auc"] if has_auc else [])),
        rows=[
            (row.metric, row.spearman, row.low, row.high, row.p_value, *([row.auc] if has_auc else []))
            for row in rows
        ],
        summary={
            "pairs": max((row.n for row in rows), default=0),
            "interval": "95% bootstrap",
            "p": "two-sided permutation test",
            **_negated(row.metric for row in rows),
            **{f"signature of {row.metric}": row.signature for row in rows},
        },
    )


def _system_table(rows: Sequence[SystemCorrelation]) -> Table:
    """Make the table of correlations between the mean scores and the mean ratings of systems."""
    return Table(
        columns=("metric", "pearson", "spearman", "kendall"),
        rows=[(row.metric, row.pearson, row.spearman, row.kendall) for row in rows],
        summary={
            "systems": max((row.systems for row in rows), default=0),
            **_negated(row.metric for row in rows),
            **{f"signature of {row.metric}": row.signature for row in rows},
        },
    )


def _negated(names: Iterable[str]) -> dict[str, str]:
    """Make a note for each metric whose scores are negated, so that a positive correlation always means
    agreement.
    """
    from simllm.metrics import registry

    return {f"sign of {name}": "negated, lower is better" for name in names if registry.lower_is_better(name)}
