"""LaTeX tables of a study of classifiers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from simllm.evaluation.classifiers.classifier_conclusions import DASH, format_estimate, title
from simllm.evaluation.classifiers.ecser_protocol import ClassifierStudy
from simllm.evaluation.classifiers.metric_estimate import Estimate
from simllm.evaluation.classifiers.metrics_with_intervals import Performance
from simllm.evaluation.classifiers.prediction_files import SPLITS
from simllm.evaluation.classifiers.significance_verdicts import Answer
from simllm.io.latex import escape_latex, latex_table
from simllm.io.number_format import format_number, format_p_value

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


def write_latex(study: ClassifierStudy) -> str:
    """Return a table of metrics for each split, and a table of tests for each split or pair of splits."""
    parts = ["% \\usepackage{booktabs}\n"]
    for split in SPLITS:
        found = {name: one.splits[split] for name, one in study.classifiers.items() if split in one.splits}
        if found:
            parts.append(_metrics_table(found, split, study.labels))
    for split in dict.fromkeys(answer.split for answer in study.tests):
        rows = [_test_row(answer) for answer in study.tests if answer.split == split]
        caption = f"Significance tests on {escape_latex(split)} data; an unparsed output is wrong."
        header = ["Question", "Test", "$p$", "$p$ (Holm)", "Effect [95\\% interval]"]
        label = f"classifier-tests-{split}"
        parts.append(latex_table(caption, label, header, rows, alignment="p{3.3cm}p{1.7cm}rrr", small=True))
    return "\n".join(parts)


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
