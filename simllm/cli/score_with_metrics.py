"""`simllm score --metrics A,B,…`: score text pairs by several metrics, one column for each metric."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from simllm.cli import results, score_report_option, shared_options
from simllm.cli.results import print_mean
from simllm.cli.score_report_option import Groups
from simllm.errors import InputError
from simllm.io import packages, tables
from simllm.io.text_pairs import EqualPairs, PairSource, PairWithId, shown_id

if TYPE_CHECKING:
    from simllm.array_types import Floats
    from simllm.metrics.interface import Example, Metric, MetricScores

# Options of `simllm score` that only the learned metric has, with their defaults. They exclude --metrics.
_LEARNED_ONLY: dict[str, str | bool | None] = {"pooling": None, "similarity": None, "frequencies": None}
_LEARNED_ONLY |= {"mode": "exact", "on_long": "truncate", "scale": "raw"}
_LEARNED_ONLY |= {"measure": "similarity", "resume": False}
# Options of `simllm score` that only metrics for code have, with their defaults.
_CODE_ONLY = {"source_field": "source", "language": None, "as_published": False, "largest_tree": None}


@dataclass(frozen=True)
class _Read:
    """The pairs as rows of the output table and as input of metrics.

    `facts` has the number of replies of a language model without code; empty if the candidates are no
    replies.
    """

    rows: list[PairWithId]
    examples: list[Example]
    facts: dict[str, Any]


def refuse_code_options(options: argparse.Namespace) -> None:
    """Refuse options that only metrics for code use."""
    shared_options.refuse(options, _CODE_ONLY, "goes with metrics for code in --metrics")


def run(options: argparse.Namespace, source: PairSource, groups: Groups) -> None:
    """Score all pairs by each metric in `--metrics`, and write a table with a column for each metric."""
    shared_options.refuse(options, _LEARNED_ONLY, "does not go with --metrics")
    names = shared_options.chosen_names(options.metrics, options.model)
    chosen = list(dict.fromkeys(shared_options.with_code_options(names, options)))
    with packages.require_eval_extra():
        from simllm.metrics import registry
        from simllm.metrics.interface import UnavailableError
    read = _read(options, source, chosen)
    metrics: dict[str, Metric] = {}
    scored: dict[str, MetricScores] = {}
    summary: dict[str, Any] = {"pairs": len(read.rows), **read.facts}
    equal = EqualPairs()
    equal.count(read.rows)
    with results.collected() as about_scores:
        for name in chosen:
            try:
                metrics[name] = _load(name, options)
                scored[name] = metrics[name].score(read.examples)
            except UnavailableError as error:
                # Other commands leave an unavailable metric out; here it is a column that the user asked for.
                raise InputError(f"metric {name}: {error}") from None
            summary |= _facts(name, scored[name], registry.lower_is_better(name))
    left_out = [
        f"{name}: {count} of {len(read.rows)} pairs have no score and are left out of its mean"
        for name in chosen
        if (count := summary.get(f"left out of mean {name}"))
    ]
    summary |= results.tell([*source.messages, *equal.warnings(), *about_scores, *left_out])
    form = tables.format_for(options.format, options.output)
    columns = [_shown(scores.values) for scores in scored.values()]
    table = tables.Table(
        [*(["id"] if options.id_field else []), *scored, "candidate", "reference"],
        [
            [*shown_id(row, form if options.id_field else None), *values, *row[:2]]
            for row, *values in zip(read.rows, *columns, strict=True)
        ],
        summary,
    )
    tables.write(table, form, options.output)
    for name, scores in scored.items():
        known = len(read.rows) - summary.get(f"left out of mean {name}", 0)
        print_mean(options, form, known, (f"mean {name}", summary[f"mean {name}"]), scores.signature)
    if options.report:
        _write_report(options, groups, read.rows, scored, metrics)


def _write_report(
    options: argparse.Namespace,
    groups: Groups,
    rows: Sequence[PairWithId],
    scored: Mapping[str, MetricScores],
    metrics: Mapping[str, Metric],
) -> None:
    """Write the HTML report, whose histogram and means of groups are those of the first metric."""
    from simllm.analysis.score_report import ScoredPairs
    from simllm.scoring.scores import Scores

    learned = {name: scores for name, scores in scored.items() if isinstance(scores, Scores)}
    fields = score_report_option.columns_of(learned) if learned else {}
    if next(iter(scored)) not in learned:
        fields["calibration"] = None  # the calibration is not that of the main metric
    fields["signature"] = " ".join(f"{name}: {scores.signature}" for name, scores in scored.items())
    pairs = ScoredPairs(
        [row.reference for row in rows],
        {"": [row.candidate for row in rows]},
        {name: scores.values for name, scores in scored.items()},
        ids=[row.id for row in rows] if options.id_field else None,
        groups=groups,
        **fields,
    )
    explained = {}
    if learned:
        from simllm.metric import SimLLM

        explained = {name: metric for name, metric in metrics.items() if isinstance(metric, SimLLM)}
    score_report_option.write(options, pairs, explained)


def _load(name: str, options: argparse.Namespace) -> Metric:
    from simllm.metrics import registry

    # `registry.load` gives a metric whose scores lack the probability of the same meaning, which the report
    # shows.
    kind, _, argument = name.partition("=")
    if options.report and kind == "simllm":
        from simllm.metric import SimLLM

        return SimLLM(argument or options.model)
    return registry.load(name, options.model)


def _read(options: argparse.Namespace, source: PairSource, chosen: Sequence[str]) -> _Read:
    """Read all pairs, with language and source (the code before an edit) if a metric needs them."""
    from simllm.metrics import registry
    from simllm.metrics.interface import Example

    if not any(map(registry.is_code_metric, chosen)):
        refuse_code_options(options)
        rows = list(source.rows())
        return _Read(rows, [Example(row.candidate, row.reference) for row in rows], {})
    if options.jsonl is None:
        raise InputError("metrics for code need --jsonl FILE")
    with packages.require_code_extra():
        from simllm.evaluation.code_edits.items import CodeFields, describe_replies, read_items
    fields = CodeFields(
        options.candidate_field, options.reference_field, options.source_field, options.id_field
    )
    needs_source = any(map(registry.needs_source, chosen))
    published = options.as_published
    items = list(read_items(options.jsonl, fields, options.language, needs_source, published))
    return _Read(
        [PairWithId(item.example.candidate, item.example.reference, item.id) for item in items],
        [item.example for item in items],
        describe_replies(items),
    )


def _shown(values: Floats) -> list[float]:
    """Return scores as they are shown: nltk's BLEU returns tiny numbers where it means 0."""
    from simllm.metrics.text.readable_texts import ALMOST_ZERO

    return [0.0 if abs(value) < ALMOST_ZERO else value for value in values.tolist()]


def _facts(name: str, scores: MetricScores, lower_is_better: bool) -> dict[str, Any]:
    """Return facts about a metric's scores for the summary: mean, signature, pairs without a score (NaN),
    direction.
    """
    known = [value for value in scores.values.tolist() if not math.isnan(value)]
    facts: dict[str, Any] = {f"mean {name}": sum(known) / len(known) if known else math.nan}
    if left_out := len(scores.values) - len(known):
        facts[f"left out of mean {name}"] = left_out
    if lower_is_better:
        facts[f"better {name}"] = "lower"
    return facts | {f"signature of {name}": scores.signature}
