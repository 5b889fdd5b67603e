"""The option `--report` of commands that score text pairs: an HTML page that shows the pairs."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simllm.cli.shared_options import CommonOptions
from simllm.errors import InputError
from simllm.io import output_file, packages, reading, tables
from simllm.text_cleaning import encodable

if TYPE_CHECKING:
    from simllm.analysis.comparison import Comparison
    from simllm.analysis.judge import JudgeBias
    from simllm.analysis.score_report.pairs import ScoredPairs
    from simllm.io.text_pairs import PairWithId
    from simllm.metric import SimLLM
    from simllm.metrics.interface import MetricScores
    from simllm.scoring.scores import Scores

Groups = Mapping[str, Sequence[str]]  # from each field's name to its value for each pair


@dataclass(frozen=True, kw_only=True)
class ReportOptions(CommonOptions):
    """The options of a command with `--report`."""

    report: Path | None = None


@dataclass(frozen=True, kw_only=True)
class PairOptions(ReportOptions):
    """The options of a command whose report is about the pairs of one system."""

    jsonl: Path | None = None
    id_field: str | None = None
    group_by: str | None = None
    metrics: str | None = None

    @property
    def has_judge(self) -> bool:
        """Whether a judge is among the metrics; its bias is told by groups."""
        return any(name.strip().startswith("judge=") for name in (self.metrics or "").split(","))


def check(options: ReportOptions) -> None:
    """Check before any scoring that the report can be written, so that a long run does not fail at its end.

    Raises:
        InputError: The file is standard output or the output, or exists without `--overwrite`. Or a package
            that the report needs is not installed.
    """
    if options.report is None:
        return
    if reading.is_stdin(options.report):
        raise InputError("--report -: expected a file; the table goes to standard output")
    output_file.check_output(options.report, options.overwrite)
    if options.output is not None and output_file.real(options.output) == output_file.real(options.report):
        raise InputError(f"--report {options.report}: -o names the same file")
    with packages.require_eval_extra():
        # Only tried out here: a missing package must be an error before the scoring.
        import jinja2  # noqa: F401
        import scipy  # noqa: F401

        from simllm.io import svg_figure  # noqa: F401


def read_groups(options: PairOptions) -> Groups:
    """Read the values of each field of `--group-by`, one for each pair.

    More than 12 different whole numbers become ranges such as "4 to 6".
    """
    if options.group_by is None:
        return {}
    if options.report is None and not options.has_judge:
        raise InputError("--group-by goes with --report FILE, or with a judge in --metrics")
    # The file is read twice: here for the groups, and later for the pairs.
    if options.jsonl is None or not options.jsonl.is_file():
        message = "--group-by goes with --jsonl FILE or --table FILE, and not with standard input or a pipe"
        raise InputError(message)
    columns: dict[str, list[Any]] = {name.strip(): [] for name in options.group_by.split(",")}
    for where, row in reading.rows(options.jsonl, columns):
        for name, values in columns.items():
            values.append(reading.value_under(row, name, where))
    from simllm.analysis.score_report.sentences import group_names  # slow, so not before the checks

    return {encodable(name): group_names(values) for name, values in columns.items()}


def columns_of(scores: Mapping[str, Scores]) -> dict[str, Any]:
    """Collect what the report shows about the scores of a simllm model, as keyword arguments for
    `ScoredPairs`.

    `scores` are by the name of the report's column, which is a metric or a system. The number of truncated
    texts, the signature and the calibration are those of the first column.
    """
    first = next(iter(scores.values()))
    return {
        "same": {name: own.same for name, own in scores.items() if own.same is not None},
        "changed": {name: own.changed for name, own in scores.items() if own.same is not None},
        "truncated": first.truncated,
        "signature": first.signature,
        "calibration": first.calibration,
    }


def write(
    options: ReportOptions,
    scored: ScoredPairs,
    metrics: Mapping[str, SimLLM],
    comparison: Comparison | None = None,
    biases: Mapping[str, JudgeBias] | None = None,
) -> None:
    """Write the report, and print its path to standard error.

    `metrics` are the learned metrics by column; they find texts that are too long, and words that change the
    meaning. `comparison` is None for a single system; `biases` are those of judges, by their column.
    """
    from simllm.analysis.score_report import render_report

    assert options.report is not None
    # The words may have surrogates in place of bytes that are not UTF-8.
    command = encodable(shlex.join(["simllm", *sys.argv[1:]]))
    if metrics:
        from simllm.analysis.score_report.pairs import (
            explain_changed_pairs,
            find_clause_notes,
            find_divided_pairs,
            find_long_texts,
        )

        words, long = explain_changed_pairs(metrics, scored), find_long_texts(metrics, scored.texts)
        scored = replace(
            scored, changed_by=words, long_texts=long, divided=find_divided_pairs(metrics, scored)
        )
        scored = replace(scored, clause_notes=find_clause_notes(metrics, scored))
    output_file.check_output(options.report, options.overwrite)  # another program may have just written it
    output_file.write(options.report, render_report(scored, command, comparison, biases))
    if not options.quiet:
        print(f"simllm: report {tables.printable(options.report)}", file=sys.stderr)


def write_for_pairs(
    options: PairOptions,
    groups: Groups,
    rows: Sequence[PairWithId],
    scored: Mapping[str, MetricScores],
    metrics: Mapping[str, object],
    signature: str,
    biases: Mapping[str, JudgeBias] | None = None,
    **more: Any,
) -> None:
    """Write the report about the pairs of one system.

    Scores and metrics are by column. The histogram and the means of groups are those of the first column.
    `more` are further attributes of `ScoredPairs`.
    """
    from simllm.analysis.score_report import ScoredPairs
    from simllm.metric import SimLLM
    from simllm.scoring.scores import Scores

    if any(len(values) != len(rows) for values in groups.values()):
        raise InputError(f"{options.jsonl}: changed while it was read")
    learned = {name: scores for name, scores in scored.items() if isinstance(scores, Scores)}
    fields = columns_of(learned) if learned else {}
    if next(iter(scored)) not in learned:
        fields["calibration"] = None  # the calibration is not that of the main metric
    fields["signature"] = signature
    pairs = ScoredPairs(
        [row.reference for row in rows],
        {"": [row.candidate for row in rows]},
        {name: scores.values for name, scores in scored.items()},
        ids=[row.id for row in rows] if options.id_field else None,
        groups=groups,
        **fields,
        **more,
    )
    explained = {name: metric for name, metric in metrics.items() if isinstance(metric, SimLLM)}
    write(options, pairs, explained, biases=biases)
