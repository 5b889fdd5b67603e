"""`simllm evaluate classifiers`: evaluate the predictions of classifiers by the protocol ECSER-LLM."""

from __future__ import annotations

import argparse
import math
import shlex
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from simllm.cli import shared_options
from simllm.cli.shared_options import CommonOptions
from simllm.errors import InputError
from simllm.io import output_file, packages
from simllm.io.tables import FORMATS as FORMATS
from simllm.io.tables import Table, format_count

if TYPE_CHECKING:
    from simllm.evaluation.classifiers import ClassifierStudy

EXAMPLES = """examples:
  simllm evaluate classifiers persona.csv zeroshot.jsonl --positive fail --groups suite --out report
  simllm evaluate classifiers predictions.csv --columns gold=label,predicted=answer --out report
  simllm evaluate classifiers persona.jsonl --variant persona:typos=typos.jsonl --positive fail --out report
  simllm evaluate classifiers --ratings haque2022.jsonl --acceptable 3 --metrics simllm,rouge-l --out report

A file is CSV or JSON lines, a row a prediction. Columns:
  item, gold, predicted     required; an empty `predicted` is an output that could not be parsed
  classifier                default: the name of the file
  split                     train, validation (selects the best one) or test (the default; is reported)
  fold, data_set, run       further parts of the same split, data set or classifier
  variant                   empty for the original item; the name of a variant of it, such as renamed, or of a
                            variant of the prompt
  confidence, probability, probabilities or score     at most one of them:
                            of the predicted label; of the positive class; of all classes (an object, or
                            columns such as p:bug); any number that is higher for the positive class
  seconds, tokens, energy_wh, cost
Other columns can be named by --groups; their values are compared (fairness). Outputs of `simllm generate
--labels` are read as they are, and so are files of the ECSER-LLM thesis (results_SPLIT_PROMPT.csv).

Facts for --about are text under model, prompts, temperature, split, metrics and reasons; the page lists those
that are missing.
"""


@dataclass(frozen=True, kw_only=True)
class Options(CommonOptions):
    """The options of `simllm evaluate classifiers`."""

    files: list[Path]
    out: Path
    positive: str | None = None
    groups: str = ""
    columns: str = ""
    variant: list[str]
    threshold: float | None = None
    matrix: list[str]
    select_by: str = "mcc"
    alpha: float = 0.05
    bins: int = 10
    about: Path | None = None
    ratings: Path | None = None
    acceptable: float | None = None
    metrics: str | None = None
    folds: int | None = None
    perturb: bool = False
    model: str | None = None


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of `simllm evaluate classifiers` to its parser."""
    command.add_argument("files", type=Path, nargs="*", metavar="FILE", help="predictions, as told below")
    command.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder of the report")
    command.add_argument(
        "--positive", metavar="CLASS",
        help="the positive class; needed for two classes other than 0 and 1; with more: one against the rest",
    )  # fmt: skip
    command.add_argument("--groups", metavar="A,B,…", help="columns with groups to compare")
    command.add_argument(
        "--columns", metavar="A=B,…", help="names in the files: gold=label reads gold from label"
    )
    command.add_argument(
        "--variant",
        action="append",
        default=[],
        metavar="NAME:VARIANT=FILE",
        help="predictions of the classifier NAME for a variant, such as an attacked prompt; NAME=FILE: the "
        "file names the variants in a column",
    )
    command.add_argument(
        "--threshold", type=float, metavar="T", help="without a label: predict the positive class from T on"
    )
    command.add_argument(
        "--matrix",
        action="append",
        default=[],
        metavar="NAME=TP,FP,FN,TN",
        help="a published classifier of which only counts are known",
    )
    command.add_argument("--select-by", metavar="METRIC", help="selects the best one; default: %(default)s")
    command.add_argument("--alpha", type=float, help="significance level; default: %(default)s")
    command.add_argument("--bins", type=int, help="bins for calibration; default: %(default)s")
    command.add_argument("--about", type=Path, metavar="FILE", help="TOML with facts about the study")
    metrics = command.add_argument_group("metrics as classifiers")
    metrics.add_argument("--ratings", type=Path, metavar="FILE", help="rated pairs, in place of predictions")
    metrics.add_argument("--acceptable", type=float, metavar="R", help="the lowest acceptable mean rating")
    shared_options.add_metrics_option(metrics)
    metrics.add_argument("--folds", type=int, metavar="K", help="folds that learn the threshold; default: 10")
    metrics.add_argument(
        "--perturb", action="store_true", help="add variants of the candidates that keep the meaning"
    )


def run(options: Options) -> None:
    """Run `simllm evaluate classifiers`: write a report folder, and a table of the classifiers."""
    with packages.require_eval_extra():
        from simllm.evaluation import classifiers, ratings
        from simllm.evaluation.classifiers import metric_classifier, report
        from simllm.evaluation.classifiers.protocol import main_split
        from simllm.io.report import check_report
        from simllm.metrics import registry
    matrices = {}
    for text in options.matrix:
        name, counts = _pair("--matrix", text)
        if name in matrices:
            raise InputError(f"--matrix {text}: {name} stands twice")
        matrices[name] = _counts(text, counts)
    # Everything that can be refused without a metric is refused before the metrics are loaded.
    if bool(options.files) == bool(options.ratings):
        raise InputError("expected files of predictions, or --ratings")
    _check_mode(options)
    columns = dict(_pair("--columns", text) for text in shared_options.split_names(options.columns))
    variants = _variants(options.variant)
    inputs = [
        *options.files,
        *variants.values(),
        *(file for file in (options.about, options.ratings) if file),
    ]
    output_file.check_output(options.output, options.overwrite)
    check_report(options.out, report.KIND, inputs)
    about = report.read_about(options.about)
    positive, missing = options.positive, dict[str, str]()
    if options.ratings:
        if options.acceptable is None or not math.isfinite(options.acceptable):
            raise InputError("--ratings needs --acceptable: the lowest acceptable mean rating")
        names = shared_options.chosen_names(options.metrics, options.model)
        metrics, missing = registry.load_all(names, options.model)
        rated, positive = ratings.load(options.ratings), metric_classifier.POSITIVE
        predictions = metric_classifier.classify(
            rated,
            options.acceptable,
            metrics,
            10 if options.folds is None else options.folds,
            options.perturb,
        )
    else:
        predictions = classifiers.read(options.files, columns, options.threshold, positive, variants)
    study = classifiers.evaluate(
        predictions,
        positive,
        shared_options.split_names(options.groups),
        options.select_by,
        options.alpha,
        options.bins,
        matrices,
    )
    # The report shows how it was made, so that others can repeat it.
    command = "simllm " + shlex.join(sys.argv[1:])
    report.write(study, options.out, command, about, keep_predictions=bool(options.ratings))
    for sentence in classifiers.find_warnings(study):
        warnings.warn(sentence, stacklevel=2)
    names = ["accuracy", options.select_by, *(["auc"] if len(study.labels) == 2 else [])]
    rows = []
    for name, found in study.classifiers.items():
        split = main_split(found.splits)
        part = found.splits[split]
        # --select-by may name the accuracy or the AUC, which would give the same column twice.
        values = [part.metrics.get(metric) for metric in dict.fromkeys(names)]
        sizes = [part.n, part.unparsed, part.invented]
        rows.append([name, split, *sizes, *(one and one.value for one in values)])
    table = Table(
        columns=("classifier", "split", "rows", "unparsed", "invented", *dict.fromkeys(names)),
        rows=rows,
        summary={
            **_robustness(study),
            "selected": study.selected or "none",
            "report": f"{options.out}/report.html",
        },
    )
    shared_options.write_table(table, missing, options)


def _robustness(study: ClassifierStudy) -> dict[str, str]:
    """Return the PDR and the ASR of each variant, as they stand below the table."""
    found = {}
    for name, result in study.classifiers.items():
        for variant, one in result.robustness.variants.items():
            rates = [
                f"{key} {'n/a' if rate is None else f'{rate:.3f}'}"
                for key, rate in (("PDR", one.pdr), ("ASR", one.asr))
            ]
            found[f"{name}, {variant}"] = f"{rates[0]}, {rates[1]} ({format_count(one.n, 'item')})"
    return found


def _check_mode(options: Options) -> None:
    """Check that no option for ratings is given with files of predictions, or the other way round."""
    of_ratings = {
        "--acceptable": options.acceptable,
        "--metrics": options.metrics,
        "--folds": options.folds,
        "--perturb": options.perturb or None,
        "--model": options.model,
    }
    of_files = {
        "--threshold": options.threshold,
        "--columns": options.columns or None,
        "--variant": options.variant or None,
        "--positive": options.positive,
    }
    wrong, other = (of_files, "files of predictions") if options.ratings else (of_ratings, "--ratings")
    for name, value in wrong.items():
        if value is not None:
            raise InputError(f"{name} goes with {other}")


def _pair(option: str, text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise InputError(f"{option} {text}: expected NAME=VALUE")
    return name, value


def _variants(texts: Sequence[str]) -> dict[tuple[str, str], Path]:
    found = {}
    for text in texts:
        name, file = _pair("--variant", text)
        classifier, colon, variant = name.partition(":")
        if not classifier or bool(colon) != bool(variant):
            raise InputError(
                f"--variant {text}: expected NAME:VARIANT=FILE, such as persona:typos=typos.jsonl"
            )
        if (classifier, variant) in found:
            raise InputError(f"--variant {text}: {name} stands twice")
        found[classifier, variant] = Path(file)
    return found


def _counts(text: str, counts: str) -> Sequence[int]:
    try:
        # Whether the counts are possible is checked by `classifiers.evaluate`.
        found = [int(count) for count in counts.split(",")]
    except ValueError:
        found = []
    if len(found) != 4:
        raise InputError(f"--matrix {text}: expected NAME=TP,FP,FN,TN, such as gpt-4=71,9,29,91")
    return found
