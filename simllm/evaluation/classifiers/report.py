"""The report of a study of classifiers: page with figures, JSON and LaTeX."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pandas import DataFrame

from simllm.array_types import Floats
from simllm.errors import InputError
from simllm.evaluation.classifiers.metrics import Estimate, Performance
from simllm.evaluation.classifiers.predictions import SPLITS, positive_scores
from simllm.evaluation.classifiers.protocol import ClassifierStudy, main_split
from simllm.evaluation.classifiers.significance import Answer
from simllm.evaluation.classifiers.warnings import LEAST_ROWS, find_warnings
from simllm.io.html_page import DASH
from simllm.io.reading import read_toml
from simllm.io.report import ReportKind, write_report
from simllm.io.svg_figure import BLUE, GREY, Figure, style, svg_element
from simllm.io.tables import (
    escape_latex,
    format_count,
    format_number,
    format_p_value,
    latex_table,
    short_label,
)
from simllm.stats.calibration import Bin
from simllm.stats.intervals import Spread

_MOST_CURVES, _MOST_POINTS = 8, 400
_COLORS = (BLUE, "#c1571b", "#4a7c2f", "#8a4fa0", "#b0912b", "#2f6f6f", "#a33b4f", "#555555")
_TITLES = {name: name.upper() for name in ("f1", "f2", "mcc", "auc")} | {"kappa": "Cohen's kappa"}
_WITH_INTERVALS = 2  # largest number of classifiers whose columns fit on a page with intervals
_TESTS = {
    "mcnemar-exact": "McNemar, exact",
    "mcnemar-chi2": "McNemar",
    "cochran-q": "Cochran's Q",
    "chi2": "chi-squared",
    "chi2-permutation": "chi-squared, permuted",
    "fisher": "Fisher, exact",
    "delong": "DeLong",
    "paired-permutation": "permutation",
    "wilcoxon": "Wilcoxon",
    "friedman-nemenyi": "Friedman, Nemenyi",
    "welch-t": "Welch",
    "mann-whitney": "Mann-Whitney",
}


_PREDICTIONS = "predictions.jsonl"
KIND = ReportKind(
    "a report on classifiers",
    "classifiers.json",
    Path(__file__).with_name("classifier_report.html"),
    ("numpy", "pandas", "scikit-learn", "scipy", "statsmodels"),
    more=[_PREDICTIONS],
)
# The keys of facts that a reader needs to repeat a study (steps S2 to S5), and descriptions of the facts.
FACTS = {
    "model": "the model and its version",
    "prompts": "the prompts, word for word",
    "temperature": "the temperature and other settings of generation",
    "split": "how the data were split, and why",
    "metrics": "which metrics were chosen, and why",
    "reasons": "why these classifiers were compared",
}


def read_about(file: Path | None) -> dict[str, str]:
    """Read facts about a study from a TOML file whose keys are keys of `FACTS`; none without a file."""
    if file is None:
        return {}
    found = read_toml(file)
    if unknown := sorted(found.keys() - FACTS.keys()):
        raise InputError(f"{file}: unknown key {unknown[0]}; known: {', '.join(FACTS)}")
    return {name: _shown(value) for name, value in found.items()}


def _shown(value: Any) -> str:
    """Convert a TOML value to text; the elements of a list are joined with commas."""
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    return value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)


def write(
    study: ClassifierStudy,
    folder: Path,
    command: str,
    about: Mapping[str, str],
    keep_predictions: bool = False,
) -> None:
    """Write `report.html`, `classifiers.json` and `tables.tex`, and on request `predictions.jsonl`.

    An earlier report is replaced. The report shows `about`, the facts of `read_about`.
    """
    page = {
        "study": study,
        "metrics": metric_names(study),
        "main_split": main_split,
        "least_rows": LEAST_ROWS,
        "conclusions": write_conclusions(study),
        "calibration": draw_calibration(study),
        "curves": draw_curves(study),
        "known_facts": FACTS,
        "cell": _cell,
        "title": title,
    }
    predictions = {_PREDICTIONS: study.predictions.to_json_lines()} if keep_predictions else None
    facts = {"about": dict(about)}
    write_report(folder, KIND, command, numbers(study), page, facts, latex(study), predictions)


def numbers(study: ClassifierStudy) -> dict[str, Any]:
    """Return all numeric results of a study as a dict that can be written as JSON."""
    spelling = study.predictions.spelling
    return {
        "warnings": find_warnings(study),
        "labels": study.labels,
        "invented": study.invented,
        "spelling": {
            "respelled": {label: {"as": name, "n": n} for label, (name, n) in spelling.respelled.items()},
            "apart": spelling.apart,
            "missing": spelling.missing,
        },
        "classifiers": {name: _plain(asdict(found)) for name, found in study.classifiers.items()},
        "tests": [asdict(answer) for answer in study.tests],
        "selected": study.selected,
        "select_by": study.select_by,
        "leaks": {"items": study.leaks, "named": study.leaked},
    }


def _plain(value: Any) -> Any:
    """Replace each `Bin` within nested dicts and lists by a dict."""
    if isinstance(value, Bin):
        return {"bin": value.number, "n": value.size, "confidence": value.probability, "rate": value.share}
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, list) else value


def metric_names(study: ClassifierStudy) -> list[str]:
    """Return the names of all computed metrics, in the order of the report's tables."""
    splits = [split for found in study.classifiers.values() for split in found.splits.values()]
    return list(dict.fromkeys(name for split in splits for name in split.metrics))


def _cell(value: float | None) -> str:
    # Templates pass counts, too, and costs far below 1.
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return DASH
    return f"{value:,.3f}".rstrip("0").rstrip(".") if abs(value) >= 0.01 or not value else f"{value:.2g}"


def title(metric: str) -> str:
    """Return the name of a metric as tables show it, such as "MCC" or "balanced accuracy"."""
    return _TITLES.get(metric, metric.replace("_", " "))


def format_estimate(found: Estimate | None) -> str:
    """Format a value with its interval, if it has one, such as ".12 [-.08, .31]"; a dash without a value."""
    if found is None or found.value is None:
        return DASH
    if found.low is None or found.high is None:
        return format_number(found.value)
    return f"{format_number(found.value)} [{format_number(found.low)}, {format_number(found.high)}]"


def write_conclusions(study: ClassifierStudy) -> list[str]:
    """Write warnings, the selected classifier, the quality of each, and the differences as sentences."""
    sentences = find_warnings(study)
    if study.selected:
        sentences.append(f"On validation data, {study.selected} has the best {title(study.select_by)}.")
    elif len(study.classifiers) > 1:
        sentences.append("No classifier is selected, because there are no validation rows.")
    for name, found in study.classifiers.items():
        split = main_split(found.splits)
        sentences.append(_describe(study, name, found.splits[split], split))
    return [*sentences, *_compare(study)]


def _describe(study: ClassifierStudy, name: str, found: Performance, split: str) -> str:
    """Describe the quality of one classifier on a split."""
    # Published counts have no rows, and so neither scores nor a largest class.
    if name in study.published:
        return f"{name} (published counts of {found.n:,} items): MCC {format_estimate(found.metrics['mcc'])}."
    metrics = [
        f"{title(metric)} {format_estimate(found.metrics[metric])}"
        for metric in dict.fromkeys([study.select_by, "accuracy"])
    ]
    rows = study.predictions.rows
    own = (rows["classifier"] == name) & (rows["split"] == split) & (rows["variant"] == "")
    shares = rows.loc[own, "gold"].value_counts(normalize=True)
    text = f"{name} ({split}, {found.n:,} rows): {', '.join(metrics)}"
    text += f" (always answering {shares.index[0]}: {format_number(float(shares.iloc[0]))})"
    if found.unparsed:
        outputs = "1 output" if found.unparsed == 1 else f"{found.unparsed:,} outputs"
        text += f". {outputs} could not be parsed and are left out"
    if found.unparsed and (strict := found.strict["accuracy"]) is not None:
        text += f"; counted as wrong, they make the accuracy {format_number(strict)}"
    return " ".join([f"{text}.", *_describe_spread(found, study.select_by), *_describe_attacks(study, name)])


def _describe_spread(found: Performance, metric: str) -> Iterator[str]:
    for column, spread in found.spread.items():
        if (one := spread.get(metric)) and one.sd is not None:
            mean, sd, low, high = map(format_number, (one.mean, one.sd, one.lowest, one.highest))
            yield (
                f"Over {one.n} {column}s, the {title(metric)} has the mean {mean} and the SD {sd} (from "
                f"{low} to {high})."
            )


def _describe_attacks(study: ClassifierStudy, name: str) -> Iterator[str]:
    for variant, one in study.classifiers[name].robustness.variants.items():
        if one.pdr is not None and one.asr is not None:
            rates = f"PDR {format_number(one.pdr)} and ASR {format_number(one.asr)}"
            yield f"The variant {variant} has {rates} (of {format_count(one.n, 'item')})."


def _compare(study: ClassifierStudy) -> Iterator[str]:
    """Yield a sentence for each significant difference, and for each that has an interval but no p-value."""
    compared = [one for one in study.tests if len(one.classifiers) > 1 and one.p_holm is not None]
    significant = [one for one in compared if "This is significant" in one.verdict]
    for one in study.tests:
        if one in significant:
            yield f"{one.verdict.removesuffix('.')} ({one.split} data)."
        elif len(one.classifiers) > 1 and one.p is None and one.low is not None and one.high is not None:
            # The sentence names the better classifier first; the interval is of the first minus the second.
            low, high = (-one.high, -one.low) if (one.effect or 0) < 0 else (one.low, one.high)
            interval = f"{format_number(low)} to {format_number(high)}"
            yield f"{one.verdict.removesuffix('.')} ({one.split} data; 95% interval {interval})."
    # The AUC measures ranking, not who is right more often: it does not count for the last sentence.
    others = [one for one in compared if one not in significant and one.test != "delong"]
    if others and not any(one.test != "delong" for one in significant):
        smallest = min(one.p_holm for one in others if one.p_holm is not None)
        yield (
            "No test shows that one classifier is right more often than another (unparsed outputs are wrong; "
            f"smallest p {format_p_value(smallest, sign=True)}). They may still differ."
        )


def latex(study: ClassifierStudy) -> list[str]:
    """Return a table of metrics for each split, and a table of tests for each split or pair of splits."""
    parts = []
    for split in SPLITS:
        found = {name: one.splits[split] for name, one in study.classifiers.items() if split in one.splits}
        if found:
            parts.append(_metrics_table(found, split, study.labels))
            parts += _spread_tables(found, split)
    if table := _robustness_table(study):
        parts.append(table)
    for split in dict.fromkeys(answer.split for answer in study.tests):
        rows = [_test_row(answer) for answer in study.tests if answer.split == split]
        caption = f"Significance tests on {escape_latex(split)} data; an unparsed output is wrong."
        header = ["Question", "Test", "$p$", "$p$ (Holm)", "Effect [95\\% interval]"]
        label = f"classifier-tests-{split}"
        parts.append(latex_table(caption, label, header, rows, alignment="p{3.3cm}p{1.7cm}rrr", small=True))
    return parts


def _metrics_table(found: Mapping[str, Performance], split: str, labels: Sequence[str]) -> str:
    """Return a LaTeX table with a row for each metric and a column for each classifier."""
    # A table has one column for each classifier, and intervals are wide.
    show = _value if len(found) > _WITH_INTERVALS else _with_interval
    rows = [["Rows", *(f"{one.n:,}" for one in found.values())]]
    rows.append(["Unparsed outputs", *(f"{one.unparsed:,}" for one in found.values())])
    for metric in dict.fromkeys(name for one in found.values() for name in one.metrics):
        rows.append([_capital(metric), *(show(one.metrics.get(metric)) for one in found.values())])
    for metric in ("accuracy", "mcc"):
        strict = [Estimate(one.strict.get(metric)) for one in found.values()]
        rows.append([f"{_capital(metric)}, unparsed wrong", *map(_value, strict)])
    caption = f"Performance on {split} data"
    if len(labels) == 2:
        caption += f" (positive class: {escape_latex(labels[0])})"
    caption += ", without unparsed outputs" + (", with 95\\% intervals." if show is _with_interval else ".")
    return latex_table(
        caption, f"classifiers-{split}", ["Metric", *map(escape_latex, found)], rows, small=True
    )


def _spread_tables(found: Mapping[str, Performance], split: str) -> Iterator[str]:
    """Yield LaTeX tables of the means and SDs over folds, over runs and over variants, if there are any."""
    for column in ("fold", "run", "variant"):
        spreads = {name: one.spread[column] for name, one in found.items() if one.spread.get(column)}
        if spreads:
            names = dict.fromkeys(metric for one in spreads.values() for metric in one)
            rows = [
                [_capital(metric), *(_mean_and_sd(one.get(metric)) for one in spreads.values())]
                for metric in names
            ]
            caption = f"Mean (standard deviation) over {column}s, on {split} data, without unparsed outputs."
            header = ["Metric", *map(escape_latex, spreads)]
            yield latex_table(caption, f"classifiers-{split}-{column}s", header, rows, small=True)


def _mean_and_sd(found: Spread | None) -> str:
    if found is None or found.sd is None:
        return "--"
    return f"{format_number(found.mean)} ({format_number(found.sd)})"


def _robustness_table(study: ClassifierStudy) -> str | None:
    """Return a LaTeX table of the PDR and ASR of each variant; None without variants."""
    rows = [
        [escape_latex(name), escape_latex(variant), f"{one.n:,}", *(
            "--" if rate is None else format_number(rate) for rate in (one.pdr, one.asr, one.flipped)
        ), escape_latex(format_p_value(one.p))]
        for name, found in study.classifiers.items()
        for variant, one in found.robustness.variants.items()
    ]  # fmt: skip
    if not rows:
        return None
    caption = (
        "Robustness: performance drop rate (PDR), attack success rate (ASR), share of changed labels, and "
        "$p$ of McNemar's test or, with several runs, of a permutation test; an unparsed output is wrong."
    )
    header = ["Classifier", "Variant", "Items", "PDR", "ASR", "Changed", "$p$"]
    return latex_table(caption, "classifiers-robustness", header, rows, small=True)


def _capital(metric: str) -> str:
    name = title(metric)
    return escape_latex(name[0].upper() + name[1:])


def _value(found: Estimate | None) -> str:
    return "--" if found is None or found.value is None else format_number(found.value)


def _with_interval(found: Estimate | None) -> str:
    return format_estimate(found).replace(DASH, "--")


def _test_row(answer: Answer) -> Sequence[str]:
    p, p_holm = ("--" if p is None else escape_latex(format_p_value(p)) for p in (answer.p, answer.p_holm))
    # A comparison by an interval alone has no test to name.
    test = _TESTS.get(answer.test, answer.test) if answer.p is not None else "--"
    effect = _with_interval(Estimate(answer.effect, answer.low, answer.high))
    return [escape_latex(answer.question), escape_latex(test), p, p_holm, effect]


def draw_calibration(study: ClassifierStudy) -> str | None:
    """Draw a reliability diagram for each of up to eight classifiers; None without probabilities."""
    shown = []
    for name, found in study.classifiers.items():
        kinds = found.splits[main_split(found.splits)].calibration
        # With more than two classes, there is only the confidence in the predicted label.
        kind = "positive" if "positive" in kinds else "top"
        if kind in kinds:
            shown.append((name, kind, kinds[kind]))
    if not shown:
        return None
    shown = shown[:_MOST_CURVES]  # the page says so
    with style():
        figure = Figure(figsize=(9, 2.6 * -(-len(shown) // 4)))
        panels = figure.subplots(-(-len(shown) // 4), 4, squeeze=False).ravel()
        for axes, (name, kind, calibration) in zip(panels, shown, strict=False):
            bins = calibration.bins
            axes.plot([0, 1], [0, 1], color=GREY, lw=1)
            sizes = np.array([each.size for each in bins])
            axes.scatter(
                [each.probability for each in bins], [each.share for each in bins],
                s=12 + 60 * sizes / sizes.max(), color=BLUE, alpha=0.8, lw=0,
            )  # fmt: skip
            axes.set_title(f"{short_label(name)}\nECE {calibration.ece:.3f}", fontsize=9)
            axes.set_xlabel("P(positive)" if kind == "positive" else "confidence")
            axes.set_ylabel("share of positives" if kind == "positive" else "accuracy")
            axes.set_xlim(-0.03, 1.03)
            axes.set_ylim(-0.03, 1.03)
        for axes in panels[len(shown) :]:
            axes.set_visible(False)
        figure.tight_layout()
    return svg_element(figure)


def draw_curves(study: ClassifierStudy) -> str | None:
    """Draw ROC and precision-recall curves of up to eight classifiers; None with more than two classes.

    A curve is computed from scores, and a dot from predicted labels. A classifier without scores has only
    dots.
    """
    if len(study.labels) != 2:
        return None
    from sklearn.metrics import precision_recall_curve, roc_curve

    with style():
        figure = Figure(figsize=(9, 3.8))
        left, right = figure.subplots(1, 2)
        left.plot([0, 1], [0, 1], color=GREY, lw=1)
        for (name, found), color in zip(study.classifiers.items(), _COLORS, strict=False):
            metrics = found.splits[main_split(found.splits)].metrics
            values = (metrics[key].value for key in ("recall", "precision", "specificity"))
            # Undefined values (None) become NaN, for which matplotlib draws no dot.
            recall, precision, specificity = (math.nan if value is None else value for value in values)
            label = short_label(name)
            left.scatter([1 - specificity], [recall], s=22, color=color, zorder=3)
            right.scatter([recall], [precision], s=22, color=color, zorder=3, label=label)
            positive, scores = _scores(study, name)
            if 0 < positive.sum() < len(positive):
                wrong, right_share, _ = roc_curve(positive, scores)
                left.plot(*_thin(wrong, right_share), lw=1.5, color=color)
                precisions, recalls, _ = precision_recall_curve(positive, scores)
                right.plot(*_thin(recalls, precisions), lw=1.5, color=color)
        for axes, x, y in ((left, "false positive rate", "recall"), (right, "recall", "precision")):
            axes.set_xlabel(x)
            axes.set_ylabel(y)
            axes.set_xlim(-0.03, 1.03)
            axes.set_ylim(-0.03, 1.03)
            axes.spines[["top", "right"]].set_visible(False)
        right.legend(frameon=False, fontsize=8)
        figure.tight_layout()
    return svg_element(figure)


def _scores(study: ClassifierStudy, name: str) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Return whether the true class is positive (n,), and the scores (n,), of rows of the main split."""
    rows: DataFrame = study.predictions.rows
    own = rows[(rows["classifier"] == name) & (rows["variant"] == "") & rows["predicted"].notna()]
    if own.empty:
        return np.array([], bool), np.array([])
    own = own[own["split"] == main_split(study.classifiers[name].splits)]
    values, _ = positive_scores(own, study.labels[0], study.labels)
    known = ~np.isnan(values)
    return (own["gold"] == study.labels[0]).to_numpy()[known], values[known]


def _thin(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Select at most 400 points of a curve, so that the report stays small."""
    # Both ends stay; rounding may choose a point twice.
    chosen = np.unique(np.linspace(0, len(x) - 1, min(len(x), _MOST_POINTS)).astype(int))
    return x[chosen], y[chosen]
