"""Welch's t-test and Mann and Whitney's rank test, which compare two independent samples.

Shapiro and Wilk's test decides: Welch's test is used for samples that look normal.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np

from simllm.array_types import Floats
from simllm.stats.significance_outcome import Outcome

_NORMAL = 0.05  # a t-test is chosen if the p-value of Shapiro and Wilk's test is at least this


def choose_for_degradation(
    validation_folds: int, test_sets: int, shapiro_p: tuple[float, float] | None = None
) -> str:
    """Choose the test that compares a metric's values on validation folds with its values on test sets.

    The comparison shows whether a classifier gets worse on new data (degradation). `shapiro_p` are the
    p-values of the test of normality on both; None if there are fewer than 3 folds or 3 test sets.
    """
    if shapiro_p is None or min(validation_folds, test_sets) < 3:
        return "none: interval only"
    return "welch-t" if min(shapiro_p) >= _NORMAL else "mann-whitney"


class Samples(NamedTuple):
    """The outcome of a comparison, and the two p-values of the test of normality by which it was chosen.

    Attributes:
        shapiro_p: None if a sample has fewer than 3 values.
    """

    outcome: Outcome
    shapiro_p: tuple[float, float] | None


def compare_samples(a: Floats, b: Floats) -> Samples:
    """Test whether two independent samples, (n,) and (m,) values, differ.

    p is NaN if a sample has fewer than 3 values, or if both are constant with different values.
    """
    from scipy.stats import mannwhitneyu, shapiro, ttest_ind

    if min(len(a), len(b)) < 3:
        return Samples(Outcome(choose_for_degradation(len(a), len(b)), np.nan, np.nan), None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Shapiro's test of equal values, and equal samples
        normal = float(shapiro(a).pvalue), float(shapiro(b).pvalue)
        name = choose_for_degradation(len(a), len(b), normal)
        found = ttest_ind(a, b, equal_var=False) if name == "welch-t" else mannwhitneyu(a, b)
    p = float(found.pvalue)
    if np.ptp(a) == np.ptp(b) == 0:  # without any spread, there is no error to compare with
        return Samples(Outcome(name, np.nan, 1.0 if a[0] == b[0] else np.nan), normal)
    # Equal samples give NaN for p; they do not differ.
    return Samples(Outcome(name, float(found.statistic), 1.0 if p != p else p), normal)
