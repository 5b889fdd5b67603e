"""`simllm score --metrics A,B,…`: score text pairs by several metrics, one column for each metric."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from simllm.cli import report_option, results, shared_options
from simllm.cli.report_option import Groups
from simllm.cli.score_options import FOR_CODE
from simllm.errors import InputError
from simllm.io import packages, reading, tables
from simllm.io.text_pairs import EqualPairs, PairSource, PairWithId, shown_id

if TYPE_CHECKING:
    from simllm.analysis.judge import JudgeBias
    from simllm.array_types import Floats
    from simllm.cli.score_options import Options
    from simllm.metrics.interface import Example, Metric, MetricScores


def run(options: Options, source: PairSource, groups: Groups) -> None:
    """Score all pairs by each metric in `--metrics`, and write a table with a column for each metric."""
    names = shared_options.chosen_names(options.metrics, options.model)
    names = shared_options.with_code_options(names, options.as_published, options.largest_tree)
    chosen = list(dict.fromkeys(names))
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
    biases = _biases(read.rows, scored, groups)
    summary |= results.tell([*source.messages, *equal.warnings(), *about_scores, *left_out])
    form = tables.format_for(options.format, options.output)
    for name, bias in biases.items():
        summary[f"bias of {name}"] = asdict(bias) if form == "json" else bias.sentences()
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
        shared_options.print_mean(
            options, form, known, (f"mean {name}", summary[f"mean {name}"]), scores.signature
        )
    signatures = " ".join(f"{name}: {scores.signature}" for name, scores in scored.items())
    if options.report:
        report_option.write_for_pairs(options, groups, read.rows, scored, metrics, signatures, biases)


def _biases(rows: list[PairWithId], scored: dict[str, MetricScores], groups: Groups) -> dict[str, JudgeBias]:
    """Compare each judge among the metrics with simllm."""
    from simllm.metrics import registry

    judges = [name for name in scored if registry.is_judge(name)]
    learned = next((name for name in scored if registry.parse(name).kind == "simllm"), None)
    if learned is None or not judges:
        return {}
    from simllm.analysis.judge import judge_bias

    texts = [row.candidate for row in rows], [row.reference for row in rows]
    found = {name: judge_bias(scored[name].values, scored[learned].values, *texts, groups) for name in judges}
    return {name: bias for name, bias in found.items() if bias is not None}


@dataclass(frozen=True)
class _Read:
    """The pairs as rows of the output table and as input of metrics.

    `facts` has the number of replies of a language model without code; empty if the candidates are no
    replies.
    """

    rows: list[PairWithId]
    examples: list[Example]
    facts: dict[str, Any]


def _read(options: Options, source: PairSource, chosen: Sequence[str]) -> _Read:
    """Read all pairs, with language and source (the code before an edit) if a metric needs them."""
    from simllm.metrics import registry
    from simllm.metrics.interface import Example

    if not any(map(registry.is_code_metric, chosen)):
        if any(map(registry.needs_source, chosen)):
            rows, examples = read_with_source(options)
            return _Read(rows, examples, {})
        shared_options.refuse(options, *FOR_CODE)
        rows = list(source.rows())
        return _Read(rows, [Example(row.candidate, row.reference) for row in rows], {})
    if options.jsonl is None:
        raise InputError("metrics for code need --jsonl FILE")
    with packages.require_code_extra():
        from simllm.evaluation.code_edits.items import CodeFields, describe_replies, read_items
    names = options.candidate_field, options.reference_field, options.source_field, options.id_field
    needs_source = any(map(registry.needs_source, chosen))
    items = list(
        read_items(options.jsonl, CodeFields(*names), options.language, needs_source, options.as_published)
    )
    return _Read(
        [PairWithId(item.example.candidate, item.example.reference or "", item.id) for item in items],
        [item.example for item in items],
        describe_replies(items),
    )


def read_with_source(options: Options) -> tuple[list[PairWithId], list[Example]]:
    """Read pairs with the code that their texts describe, for a metric or judge that reads the code.

    The language of a line comes before `--language`.
    """
    from simllm.metrics.interface import Example

    if options.jsonl is None:
        raise InputError(f'the code is read, too: expected --jsonl FILE, with "{options.source_field}"')
    shared_options.refuse(options, ("as_published", "largest_tree"), FOR_CODE[1])
    fields = options.candidate_field, options.reference_field, options.source_field
    rows, examples = list[PairWithId](), list[Example]()
    for where, row in reading.rows(options.jsonl, {*fields, "language"}):
        candidate, reference, code = (reading.text_under(row, name, where) for name in fields)
        id_ = reading.value_under(row, options.id_field, where) if options.id_field else None
        rows.append(PairWithId(candidate, reference, id_))
        language = reading.language_of(row, where, options.language)
        examples.append(Example(candidate, reference, code, language))
    if not rows:
        raise InputError(f"{options.jsonl}: empty; expected {reading.ROWS}")
    return rows, examples


def _load(name: str, options: Options) -> Metric:
    from simllm.metrics import registry

    # `registry.load` gives a metric whose scores lack the probability of the same meaning, which the report
    # shows.
    kind, _, argument = name.partition("=")
    if options.report and kind == "simllm":
        from simllm.metric import SimLLM

        return SimLLM(argument or options.model)
    return registry.load(name, options.model)


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
    more = getattr(scores, "facts", {})  # of a judge: requests, tokens, cost
    facts |= {f"{fact} of {name}": value for fact, value in more.items()}
    return facts | {f"signature of {name}": scores.signature}
