"""Overfitting and degradation of a classifier (steps S9 and S11 of the protocol ECSER-LLM).

Overfitting is a loss of quality from training data to test data; degradation, from validation data to test
data. A part is one fold of one data set: metrics are computed for each part, and then averaged.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pandas import DataFrame

from simllm.array_types import Floats
from simllm.evaluation.classifiers.metrics_with_intervals import (
    LOWER_IS_BETTER,
    Performance,
    class_numbers,
    compute_metrics,
    measure,
    strict_value,
)
from simllm.evaluation.classifiers.significance_verdicts import Finding, format_p
from simllm.stats.confusion_matrix_bootstrap import bootstrap, quantiles
from simllm.stats.confusion_matrix_metrics import count
from simllm.stats.welch_or_mann_whitney import compare_samples


def mean_metrics(rows: DataFrame, labels: Sequence[str]) -> dict[str, float]:
    """Compute the mean of each metric over the parts of a split, without metrics undefined for any part."""
    parts = [measure(own, labels, details=False) for own in folds_and_sets(rows)]
    names = [name for name in parts[0].metrics if all(name in part.metrics for part in parts)]
    return {name: value for name in names if (value := _mean_of(parts, name)) is not None}


def folds_and_sets(rows: DataFrame) -> list[DataFrame]:
    """Split a table of predictions into its parts."""
    return [own for _, own in rows.groupby(["fold", "data_set"], sort=False)]


def _mean_of(parts: Sequence[Performance], name: str) -> float | None:
    """Average a metric over parts; None if one is undefined."""
    values = [part.metrics[name].value for part in parts]
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if len(known) == len(values) else None


def differences(first: dict[str, float], second: dict[str, float]) -> dict[str, float]:
    """Return, for each metric in both dicts, its value in `first` minus its value in `second`."""
    return {name: value - second[name] for name, value in first.items() if name in second}


def ask_degradation(
    name: str, validation: DataFrame, test: DataFrame, labels: Sequence[str], metric: str
) -> Finding:
    """Test whether a metric is worse on the parts of the test data than on those of the validation data."""
    found = [
        [strict_value(measure(own, labels, details=False), metric) for own in folds_and_sets(rows)]
        for rows in (validation, test)
    ]
    folds, sets = (np.array([value for value in values if value is not None], float) for values in found)
    outcome, shapiro = compare_samples(folds, sets)
    effect = float(sets.mean() - folds.mean()) if len(folds) and len(sets) else None
    if effect and metric in LOWER_IS_BETTER:
        effect = -effect  # `strict_value` negates such a metric
    why = f"{len(folds)} validation folds and {len(sets)} test sets"
    if shapiro:
        why += f"; Shapiro's p is {format_p(shapiro[0])} and {format_p(shapiro[1])}."
    else:
        why += "; a test needs 3 of each."
    words = f"{metric} of {name} is not defined on both"
    if effect is not None:
        side = "lower" if effect < 0 else "higher"
        words = f"On test data, {metric} of {name} is {abs(effect):.3f} {side} than on validation data"
        words = words if effect else f"{metric} of {name} is the same on test and validation data"
    return Finding(
        question=f"Is {name} worse on test data than on validation data?",
        classifiers=[name],
        outcome=outcome,
        why=why,
        effect=effect,
        interval=_degradation_interval(validation, test, labels, metric),
        words=words,
        assumptions="Folds and test sets are independent; folds that share training data are not quite.",
    )


def _degradation_interval(
    validation: DataFrame, test: DataFrame, labels: Sequence[str], metric: str
) -> tuple[float, float] | None:
    """Compute a bootstrap interval of the mean on test data minus that on validation data.

    None if the metric cannot be computed from labels alone.
    """
    means: list[Floats] = []
    # The interval is as uncertain as the smaller of the two samples.
    fewest = min(len(rows.drop_duplicates(["data_set", "item"])) for rows in (test, validation))
    for rows in (test, validation):
        drawn = []
        for seed, own in enumerate(folds_and_sets(rows)):
            counts = count(*class_numbers(own, labels), len(labels))
            # Each part needs a seed of its own, or all parts would be resampled alike.
            values = bootstrap(counts, compute_metrics(labels), seed + len(means)).get(metric)
            if values is None:
                return None
            drawn.append(values)
        means.append(np.mean(drawn, axis=0))
    return quantiles(means[0] - means[1], fewest)
