"""`simllm score --metrics A,B,…`: score text pairs by several metrics, one column for each metric."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from simllm import optional_packages
from simllm.cli import metrics_option, result_warnings, score_report_option, useless_options
from simllm.cli.mean_score_on_stderr import print_mean
from simllm.cli.score_report_option import Groups
from simllm.errors import InputError
from simllm.io import tables
from simllm.io.read_text_pairs import EqualPairs, PairSource, PairWithId, shown_id

if TYPE_CHECKING:
    from simllm.array_types import Floats
    from simllm.metrics.metric_interface import Example, Metric, MetricScores

# Options of `simllm score` that only the learned metric has, with their defaults. They exclude --metrics.
_LEARNED_ONLY: dict[str, str | bool | None] = {"pooling": None, "similarity": None, "frequencies": None}
_LEARNED_ONLY |= {"mode": "exact", "on_long": "truncate", "scale": "raw"}
_LEARNED_ONLY |= {"measure": "similarity", "resume": False}
# Options of `simllm score` that only metrics for code have, with their defaults.
_CODE_ONLY = {"source_field": "source", "language": None, "as_published": False, "largest_tree": None}


@dataclass(frozen=True)
class _Read:
    """The text pairs that were read from the input, in two forms, and facts about the pairs.

    Attributes:
        rows: The pairs with their ids, as rows of the output table.
        examples: The same pairs as `Example` objects, which are the input of metrics.
        facts: A dict of facts for the summary of the output table. If the candidates are replies of a
            language model, it has the number of replies in which no code was found. Otherwise, it is empty.
    """

    rows: list[PairWithId]
    examples: list[Example]
    facts: dict[str, Any]


def refuse_code_options(options: argparse.Namespace) -> None:
    """Raise InputError if an option of metrics for code is given; other metrics do not use these options."""
    useless_options.refuse(options, _CODE_ONLY, "goes with metrics for code in --metrics")


def run(options: argparse.Namespace, source: PairSource, groups: Groups) -> None:
    """Score all text pairs by each metric in `--metrics`, and write a table with a column for each metric.

    Args:
        options: The parsed options of `simllm score`.
        source: The text pairs. Metrics for code need JSON lines, which may also name the programming language
            of each pair.
        groups: The values by which the HTML report of `--report` groups the n pairs. The keys of the dict are
            the names of the fields in `--group-by`, such as "language". Each field has n values.

    Raises:
        InputError: A metric is unknown or unavailable, or an option cannot be used with `--metrics`.
    """
    useless_options.refuse(options, _LEARNED_ONLY, "does not go with --metrics")
    names = metrics_option.chosen_names(options.metrics, options.model)
    chosen = list(dict.fromkeys(metrics_option.with_code_options(names, options)))
    with optional_packages.require_eval_extra():
        from simllm.metrics import registry
        from simllm.metrics.metric_interface import UnavailableError
    read = _read(options, source, chosen)
    metrics: dict[str, Metric] = {}
    scored: dict[str, MetricScores] = {}
    summary: dict[str, Any] = {"pairs": len(read.rows), **read.facts}
    equal = EqualPairs()
    equal.count(read.rows)
    with result_warnings.collected() as about_scores:
        for name in chosen:
            try:
                metrics[name] = _load(name, options)
                scored[name] = metrics[name].score(read.examples)
            except UnavailableError as error:
                raise InputError(f"metric {name}: {error}") from None
            summary |= _facts(name, scored[name], registry.lower_is_better(name))
    left_out = [
        f"{name}: {count} of {len(read.rows)} pairs have no score and are left out of its mean"
        for name in chosen
        if (count := summary.get(f"left out of mean {name}"))
    ]
    summary |= result_warnings.tell([*source.messages, *equal.warnings(), *about_scores, *left_out])
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
    """Write the HTML report of text pairs that one or more metrics scored.

    The first metric is the main metric of the report: the histogram and the means of groups use its scores.

    Args:
        options: The parsed options of `simllm score`.
        groups: The values by which the report groups the n pairs. The keys of the dict are the names of the
            fields in `--group-by`, such as "language". Each field has n values.
        rows: The n pairs.
        scored: A dict from the name of each metric to its scores of the n pairs.
        metrics: A dict from the name of each metric to the metric itself.
    """
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
    """Load a metric.

    If the metric is simllm's learned metric and a report is requested, the scores include the probability
    that both texts of a pair have the same meaning. The report shows this probability.

    Args:
        name: The name of the metric, such as "bleu", or "name=argument".
        options: The parsed options of `simllm score`.
    """
    from simllm.metrics import registry

    kind, _, argument = name.partition("=")
    if options.report and kind == "simllm":
        from simllm.metric import SimLLM

        return SimLLM(argument or options.model)
    return registry.load(name, options.model)


def _read(options: argparse.Namespace, source: PairSource, chosen: Sequence[str]) -> _Read:
    """Read all text pairs from the input, and further fields if a chosen metric needs them.

    Metrics for code need the programming language. Metrics for edits of code also need the code before the
    edit.

    Args:
        options: The parsed options of `simllm score`.
        source: The source of the pairs.
        chosen: The names of the metrics.

    Raises:
        InputError: A metric for code is chosen without `--jsonl`. Or no metric for code is chosen, but an
            option for such metrics is given. Or a field is missing in the input.
    """
    from simllm.metrics import registry
    from simllm.metrics.metric_interface import Example

    if not any(map(registry.is_code_metric, chosen)):
        refuse_code_options(options)
        rows = list(source.rows())
        return _Read(rows, [Example(row.candidate, row.reference) for row in rows], {})
    if options.jsonl is None:
        raise InputError("metrics for code need --jsonl FILE")
    with optional_packages.require_code_extra():
        from simllm.evaluation.code_edits.read_code_pairs import CodeFields, describe_replies, read_items
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
    """Return facts about the scores of a metric, for the summary of the output table.

    Returns:
        A dict with the mean score and the metric's signature, a text that names everything that can change a
        score. If pairs have no score (NaN), the dict also has the number of such pairs. If lower scores are
        better, the dict also has a note that says so.
    """
    known = [value for value in scores.values.tolist() if not math.isnan(value)]
    facts: dict[str, Any] = {f"mean {name}": sum(known) / len(known) if known else math.nan}
    if left_out := len(scores.values) - len(known):
        facts[f"left out of mean {name}"] = left_out
    if lower_is_better:
        facts[f"better {name}"] = "lower"
    return facts | {f"signature of {name}": scores.signature}
