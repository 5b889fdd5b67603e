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
from simllm.io import output_file, packages, tables
from simllm.io.tables import Table, escape_latex, format_number, format_p_value, latex_table

if TYPE_CHECKING:
    from simllm.evaluation.correlation import MetricCorrelation, SystemCorrelation

FORMATS = (*tables.FORMATS, "latex")
EXAMPLES = """examples:
  simllm evaluate correlation --ratings haque2022.jsonl
  simllm evaluate correlation --ratings haque2022.jsonl --metrics simllm,bleu --model my/model -f json
  simllm evaluate correlation --ratings study.csv --columns human,model,ann,bo --metrics simllm -f latex
  simllm evaluate correlation --ratings tested.jsonl --metrics lemod,rpsr,codebleu --level system
"""


@dataclass(frozen=True, kw_only=True)
class Options(CommonOptions):
    """The options of `simllm evaluate correlation`."""

    ratings: Path
    columns: str | None = None
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
        help="JSON lines, CSV or TSV with reference, candidate and rating, or with passed for code",
    )
    shared_options.add_columns_option(command)
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
    columns = shared_options.rating_columns(options.columns)
    with results.collected() as messages:
        if options.level == "system":
            rows, missing = correlation.correlate_systems(options.ratings, names, options.model, columns)
            table = _system_table(rows)
        else:
            found = correlation.correlate(options.ratings, names, options.model, columns)
            missing, table = found.missing, _pair_table(found.rows)
    # Without a single metric there is no table, so that the advice becomes the error.
    if not table.rows:
        raise InputError("; ".join(f"{name}: {remedy}" for name, remedy in missing.items()))
    if options.format == "latex":
        for name, remedy in missing.items():
            messages.append(f"{name} is left out: {remedy}")
        results.tell(messages)
        tables.show(_latex(table, options, messages), options.output)
        return
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


_TITLES = {
    "metric": "Metric",
    "spearman": "Spearman's $\\rho$",
    "pearson": "Pearson's $r$",
    "kendall": "Kendall's $\\tau_b$",
    "low": "95\\% low",
    "high": "high",
    "p_value": "$p$",
    "auc": "AUC",
}


def _latex(table: Table, options: Options, messages: Sequence[str]) -> str:
    """Format a table of correlations for LaTeX and the package booktabs."""
    rows = [
        [
            escape_latex(value)
            if isinstance(value, str)
            else f"${format_p_value(value)}$"
            if name == "p_value"
            else f"${format_number(value)}$"
            for name, value in zip(table.columns, row, strict=True)
        ]
        for row in table.rows
    ]
    n = (
        f"{table.summary['systems']} systems"
        if options.level == "system"
        else f"{table.summary['pairs']} pairs"
    )
    caption = f"Correlation with the ratings of {escape_latex(options.ratings.name)}, {n}"
    caption += "." if options.level == "system" else "; bootstrap intervals, two-sided permutation tests."
    comments = [f"{key}: {value}" for key, value in table.summary.items() if key.startswith("signature")]
    comments += [f"warning: {message}" for message in messages]
    shown = latex_table(caption, "correlation", [_TITLES[name] for name in table.columns], rows)
    return shown + "".join(f"% {tables.on_one_line(line)}\n" for line in comments)


def _negated(names: Iterable[str]) -> dict[str, str]:
    """Make a note for each metric whose scores are negated, so that a positive correlation always means
    agreement.
    """
    from simllm.metrics import registry

    return {f"sign of {name}": "negated, lower is better" for name in names if registry.lower_is_better(name)}
