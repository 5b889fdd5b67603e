"""Calibration of a classifier: the agreement of its probabilities with observed frequencies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pandas import DataFrame

from simllm.array_types import Floats, Ints
from simllm.evaluation.classifiers.brier_and_log_loss import binary_brier, binary_log_loss
from simllm.evaluation.classifiers.positive_class_score import positive_scores
from simllm.evaluation.classifiers.prediction_files import chances_of
from simllm.stats.calibration_error import Bin, calibration_errors, consistency, reliability


@dataclass(frozen=True)
class Calibration:
    """The calibration of probabilities of the positive class, or of confidences in the predicted labels.

    Attributes:
        ece: The expected calibration error: the mean gap between probability and frequency over bins of
            equal width, weighted by the number of predictions in a bin.
        mce: The largest gap in these bins.
        ece_equal_mass: The expected calibration error in bins of about equally many predictions.
        mce_equal_mass: The largest gap in the bins of about equally many predictions.
        bins: The bins of equal width.
        brier: None for confidences.
        log_loss: None for confidences.
        expected_if_calibrated: The ECE that a calibrated classifier would have by chance (see `consistency`);
            None if it was not computed.
        p: The p-value of `ece`; None if it was not computed.
    """

    ece: float
    mce: float
    ece_equal_mass: float
    mce_equal_mass: float
    bins: list[Bin]
    brier: float | None = None
    log_loss: float | None = None
    expected_if_calibrated: float | None = None
    p: float | None = None


def calibrate(
    rows: DataFrame,
    gold: Ints,
    predicted: Ints,
    labels: Sequence[str],
    bins: int,
    details: bool,
) -> tuple[dict[str, Calibration], int | None]:
    """Measure the calibration of n rows without unparsed outputs, from (n,) class numbers.

    "positive" is the calibration of P(positive), for two classes; "top" that of the confidence in the
    predicted class. `details` adds the test by `consistency` to "positive". The second value counts the rows
    whose label contradicts P(positive), as "positive" below .5; None without P(positive).
    """
    found: dict[str, Calibration] = {}
    other_side = None
    right = (gold == predicted).astype(float)
    if len(labels) == 2:
        chance, are_chances = positive_scores(rows, labels[0], labels)
        known = ~np.isnan(chance)
        if not are_chances or not known.any():
            return {}, None
        chance, claims = chance[known], predicted[known] == 0
        positive = (gold[known] == 0).astype(float)
        found["positive"] = _measure(chance, positive, bins, is_positive=True, details=details)
        found["top"] = _measure(np.where(claims, chance, 1 - chance), right[known], bins)
        other_side = int((((chance > 0.5) & ~claims) | ((chance < 0.5) & claims)).sum())
    else:
        confidence = rows["confidence"].to_numpy(float)
        chances = chances_of(rows, labels)
        if chances is not None:
            own = chances.to_numpy(float)[np.arange(len(rows)), predicted]
            # A row has either a confidence or probabilities of all classes.
            confidence = np.where(np.isnan(confidence), own, confidence)
        known = ~np.isnan(confidence)
        if known.any():
            found["top"] = _measure(confidence[known], right[known], bins)
    return found, other_side


def _measure(
    chance: Floats, label: Floats, bins: int, is_positive: bool = False, details: bool = False
) -> Calibration:
    """Measure the calibration of (n,) probabilities by (n,) labels, 0 or 1."""
    diagram = reliability(chance, label, bins)
    equal = calibration_errors(reliability(chance, label, bins, equal_mass=True))
    more: Mapping[str, Any] = {}
    if is_positive:
        more = {"brier": binary_brier(chance, label), "log_loss": binary_log_loss(chance, label)}
    if details:
        expected, p = consistency(chance, label, bins)
        more = {**more, "expected_if_calibrated": expected, "p": p}
    return Calibration(*calibration_errors(diagram), *equal, diagram, **more)
