"""`simllm evaluate study`: repeat the study of the SIMLLM paper on files of human ratings."""

from __future__ import annotations

import argparse
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from simllm.cli import results, shared_options
from simllm.cli.shared_options import CommonOptions
from simllm.errors import InputError
from simllm.io import output_file, packages
from simllm.io.tables import FORMATS as FORMATS
from simllm.io.tables import Table

EXAMPLES = """examples:
  simllm evaluate study --ratings haque2022.jsonl shen2021.jsonl --out report
  simllm evaluate study --ratings study.csv --columns human,model,ann,bo --out report
  simllm evaluate study --ratings haque2022.jsonl --checkpoints runs/checkpoints --questions rq4 --out report
"""


@dataclass(frozen=True, kw_only=True)
class Options(CommonOptions):
    """The options of `simllm evaluate study`."""

    ratings: list[Path]
    out: Path
    columns: str | None = None
    metrics: str | None = None
    checkpoints: Path | None = None
    questions: str | None = None
    model: str | None = None


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of `simllm evaluate study` to its parser."""
    command.add_argument("--ratings", type=Path, nargs="+", required=True, metavar="FILE", help="rated sets")
    command.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder of the report")
    shared_options.add_columns_option(command)
    shared_options.add_metrics_option(command)
    command.add_argument(
        "--checkpoints", type=Path, metavar="DIR", help="model folders of one training run, for rq4"
    )
    command.add_argument(
        "--questions", metavar="A,B,…",
        help="of rq2, rq4 (needs --checkpoints) and rq5; rq1 and rq3 are always answered; default: all",
    )  # fmt: skip


def run(options: Options) -> None:
    """Run `simllm evaluate study`: write a report folder, and a table of each metric's correlation with each
    set.
    """
    with packages.require_eval_extra():
        from simllm.evaluation.metric_study import report
        from simllm.evaluation.metric_study.study import QUESTIONS, run_study
        from simllm.io.report import check_report
    questions = options.questions.split(",") if options.questions is not None else QUESTIONS
    for unknown in set(questions) - set(QUESTIONS):
        raise InputError(f"question {unknown!r}: expected some of {', '.join(QUESTIONS)}")
    if options.questions is not None and "rq4" in questions and options.checkpoints is None:
        raise InputError("rq4 needs --checkpoints DIR")
    columns = shared_options.rating_columns(options.columns)
    output_file.check_output(options.output, options.overwrite)
    check_report(options.out, report.KIND, options.ratings)
    # The second question is about variants of the model, even if --metrics leaves out the model itself.
    model = None if "rq2" in questions else options.model
    names = shared_options.chosen_names(options.metrics, model)
    with results.collected() as messages:
        result = run_study(options.ratings, names, options.model, options.checkpoints, questions, columns)
    report.write(result, options.out, "simllm " + shlex.join(sys.argv[1:]), messages)
    rows = [
        (rated.name, row.metric, rank, row.spearman, row.low, row.high, row.p_value)
        for rated in result.sets
        for row, rank in zip(rated.results, rated.clusters, strict=True)
    ]
    table = Table(
        columns=("ratings", "metric", "rank", "spearman", "low", "high", "p_value"),
        rows=rows,
        summary={f"summary of {rated.name}": " ".join(rated.words) for rated in result.sets}
        | {"report": f"{options.out}/report.html"},
    )
    shared_options.write_table(table, result.missing, options, messages)
