"""`simllm score --judge-below LOW:HIGH --judge FILE`: a judge decides where simllm is unsure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from simllm.cli import results, shared_options
from simllm.cli.score_by_metrics import read_with_source
from simllm.errors import InputError
from simllm.io import packages, tables
from simllm.io.text_pairs import EqualPairs, PairSource, shown_id

if TYPE_CHECKING:
    from simllm.cli.score_options import Options

_NUMBER = r"(\d*\.?\d+|\d+\.)"


def interval(text: str) -> tuple[float, float]:
    """Return the bounds of an interval such as ".2:.8"."""
    found = re.fullmatch(f"{_NUMBER}:{_NUMBER}", text)
    low, high = map(float, found.groups()) if found else (1.0, 0.0)
    if not 0 <= low <= high <= 1:
        raise InputError(f"--judge-below {text}: expected two probabilities, such as .2:.8")
    return low, high


def run(options: Options, source: PairSource) -> None:
    """Score all pairs by simllm, ask the judge about the unsure ones, and write who decided."""
    low, high = interval(options.judge_below or "")
    with packages.require_llm_extra():
        from simllm.analysis.judge import cascade
        from simllm.metrics.interface import Example
        from simllm.metrics.judge import pointwise
    judge = pointwise.load(str(options.judge))
    if judge.judge.settings.reads_source:
        rows, examples = read_with_source(options)
    else:
        shared_options.refuse(options, ("source_field",), "goes with a judge that reads the code")
        rows = list(source.rows())
        examples = [Example(row.candidate, row.reference) for row in rows]
    equal = EqualPairs()
    equal.count(rows)
    from simllm.metric import SimLLM

    metric = SimLLM(
        options.model,
        pooling=options.pooling,
        mode=options.mode,
        device=options.device,
        on_long=options.on_long,
        long=options.long,
        prior=options.prior,
    )
    with results.collected() as messages:
        found = cascade(metric, judge, examples, low, high)
    by_judge = found.by_judge
    if lost := found.facts["pairs without a judge's score"]:
        messages.append(f"{lost} pairs have no score of the judge, so that simllm decides them")
    facts: dict[str, Any] = {
        "pairs": len(rows),
        "mean decided": float(found.decided.mean()) if len(rows) else float("nan"),
        "interval of same": f"{low:g}:{high:g}",
        **found.facts,
        "signature of simllm": found.scores.signature,
        "signature of the judge": judge.signature,
        **results.tell([*source.messages, *equal.warnings(), *messages]),
    }
    form = tables.format_for(options.format, options.output)
    cells = zip(
        rows, found.scores.values.tolist(), (found.scores.same if found.scores.same is not None else []),
        found.judged.tolist(), found.decided.tolist(), by_judge.tolist(), strict=True,
    )  # fmt: skip
    table = tables.Table(
        [
            *(["id"] if options.id_field else []), "score", "same", "judge", "decided", "by", "candidate",
            "reference",
        ],
        [
            [
                *shown_id(row, form if options.id_field else None), score, float(same), judged, decided,
                "judge" if is_judged else "simllm", *row[:2],
            ]
            for row, score, same, judged, decided, is_judged in cells
        ],
        facts,
    )  # fmt: skip
    tables.write(table, form, options.output)
    if form == "tsv" and not options.quiet:
        results.say_facts({**found.facts, "mean decided": facts["mean decided"]})
