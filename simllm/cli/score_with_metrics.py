"""`simllm score --metrics A,B,…`: score text pairs by several metrics, one column for each metric."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from simllm.cli import metrics_option, pair_source
from simllm.cli.pair_source import PairSource
from simllm.errors import InputError
from simllm.io import tables

if TYPE_CHECKING:
    from simllm.metrics.protocol import MetricScores

# Options of `simllm score` that only the learned metric has, with their defaults.
_LEARNED_ONLY: dict[str, str | bool | None] = {"pooling": None, "similarity": None, "frequencies": None}
_LEARNED_ONLY |= {"mode": "exact", "on_long": "truncate", "scale": "raw"}
_LEARNED_ONLY |= {"measure": "similarity", "resume": False}


def run(options: argparse.Namespace, source: PairSource) -> None:
    """Score all text pairs by each metric in `--metrics`, and write a table with a column for each metric.

    Args:
        options: The parsed options of `simllm score`.
        source: The text pairs.

    Raises:
        InputError: A metric is unknown or unavailable, or an option does not go with `--metrics`.
    """
    for name, default in _LEARNED_ONLY.items():
        if getattr(options, name) != default:
            raise InputError(f"--{name.replace('_', '-')} does not go with --metrics")
    chosen = metrics_option.chosen_names(options.metrics)
    rows = list(source.rows())
    with metrics_option.require_eval_extra():
        from simllm.metrics import registry
        from simllm.metrics.protocol import Example
        from simllm.metrics.text import UnavailableError
    examples = [Example(row.candidate, row.reference) for row in rows]
    scored: dict[str, MetricScores] = {}
    summary: dict[str, Any] = {"pairs": len(rows)}
    for name in dict.fromkeys(chosen):
        try:
            scored[name] = registry.load(name, options.model).score(examples)
        except UnavailableError as error:
            raise InputError(f"metric {name}: {error}") from None
        summary[f"mean {name}"] = float(scored[name].values.mean())
        summary[f"signature of {name}"] = scored[name].signature
    form = tables.format_for(options.format, options.output)
    columns = [scores.values.tolist() for scores in scored.values()]
    table = tables.Table(
        [*(["id"] if options.id_field else []), *scored, "candidate", "reference"],
        [
            [*pair_source.shown_id(row, form if options.id_field else None), *values, *row[:2]]
            for row, *values in zip(rows, *columns, strict=True)
        ],
        summary,
    )
    tables.write(table, form, options.output)
