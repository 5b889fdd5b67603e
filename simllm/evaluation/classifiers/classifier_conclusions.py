"""The main results of a study of classifiers, as English sentences."""

from __future__ import annotations

from collections.abc import Iterator

from simllm.evaluation.classifiers.ecser_protocol import ClassifierStudy, main_split
from simllm.evaluation.classifiers.metric_estimate import Estimate
from simllm.evaluation.classifiers.metrics_with_intervals import Performance
from simllm.evaluation.classifiers.study_warnings import find_warnings
from simllm.io.number_format import format_number, format_p_value

DASH = "\u2013"  # for what is not defined
_TITLES = {name: name.upper() for name in ("f1", "f2", "mcc", "auc")} | {"kappa": "Cohen's kappa"}


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
    return text + "."


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
