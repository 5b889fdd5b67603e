"""`simllm score --against code`: score summaries against the code that they describe."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from simllm.cli import report_option, results, shared_options
from simllm.cli.report_option import Groups
from simllm.errors import InputError
from simllm.io import reading, tables
from simllm.io.text_pairs import PairWithId, shown_id

if TYPE_CHECKING:
    from simllm.cli.score_options import Options
    from simllm.metrics.interface import Example, MetricScores


def run(options: Options, groups: Groups) -> None:
    """Score all items, and write a table of scores and of probabilities that candidates fit the code."""
    if options.jsonl is None or options.texts:
        raise InputError(f'--against {options.against} needs --jsonl FILE, with "{options.code_field}"')
    rows, examples = read_items(options.jsonl, options)
    from simllm.metric import SimLLM
    from simllm.metrics.interface import PlainScores

    metric = SimLLM(
        options.model, mode=options.mode, device=options.device, on_long=options.on_long, long=options.long
    )
    with results.collected() as messages:
        scores = metric.score(examples, against=options.against)
    fits = scores.fits
    form = tables.format_for(options.format, options.output)
    with_id = form if options.id_field else None
    columns = [*(["id"] if with_id else []), "score", *(["fits"] if fits is not None else []), "candidate"]
    cells = [
        [*shown_id(row, with_id), value, *([fits[i]] if fits is not None else []), row.candidate]
        for i, (row, value) in enumerate(zip(rows, scores.values.tolist(), strict=True))
    ]
    facts: dict[str, Any] = {
        "items": len(rows),
        "mean": scores.mean,
        "empty": scores.empty,
        "truncated": scores.truncated,
        "signature": scores.signature,
        **results.tell(messages),
    }
    tables.write(tables.Table(columns, cells, facts), form, options.output)
    shared_options.print_mean(options, form, len(rows), ("mean score", scores.mean), scores.signature)
    if options.report:
        scored: dict[str, MetricScores] = {"score": scores}
        if fits is not None:
            scored["fits"] = PlainScores(fits, scores.signature)
        code = [example.source or "" for example in examples]
        has_references = options.against == "both"
        # No metric, because the page explains no words of the code.
        report_option.write_for_pairs(
            options, groups, rows, scored, {}, scores.signature, code=code, has_references=has_references
        )


def read_items(file: Path, options: Options) -> tuple[list[PairWithId], list[Example]]:
    """Read the items of a file: candidate, code, and the reference for `--against both`.

    Without references, the rows have the words of the code in their place. The language of a line comes
    before `--language`.
    """
    from simllm.metrics.interface import Example
    from simllm.scoring.code import words

    rows, examples = list[PairWithId](), list[Example]()
    known = {options.candidate_field, options.code_field, options.reference_field, "language"}
    for where, row in reading.rows(file, known):
        names = [options.candidate_field, options.code_field]
        names += [options.reference_field] if options.against == "both" else []
        candidate, code, *references = (reading.text_under(row, name, where) for name in names)
        language = reading.language_of(row, where, options.language)
        id_ = reading.value_under(row, options.id_field, where) if options.id_field else None
        reference = references[0] if references else None
        rows.append(PairWithId(candidate, words(code, language) if reference is None else reference, id_))
        examples.append(Example(candidate, reference, code, language))
    if not rows:
        raise InputError(f"{file}: empty; expected {reading.ROWS}")
    return rows, examples
