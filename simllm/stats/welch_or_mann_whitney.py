"""Welch's t-test and Mann and Whitney's rank test, which compare two independent samples.

Welch's test is used for samples that look normal, and Mann and Whitney's test for other samples. Shapiro and
Wilk's test of normality decides.
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

    The comparison shows whether a classifier gets worse on new data (degradation).

    Args:
        validation_folds: The number of folds.
        test_sets: The number of test sets.
        shapiro_p: Two p-values of Shapiro and Wilk's test of normality: one for the values on the folds, one
            for the values on the test sets. None if there are fewer than 3 folds or fewer than 3 test sets.

    Returns:
        The name of the test: "welch-t" (a t-test) if both p-values are at least 0.05, otherwise
        "mann-whitney". If there are fewer than 3 folds or fewer than 3 test sets, no test is possible, and
        the result is "none: interval only".
    """
    if shapiro_p is None or min(validation_folds, test_sets) < 3:
        return "none: interval only"
    return "welch-t" if min(shapiro_p) >= _NORMAL else "mann-whitney"


class Samples(NamedTuple):
    """The outcome of a test that compares two independent samples, and the p-values by which it was chosen.

    Attributes:
        outcome: The name of the test, the test statistic and the p-value.
        shapiro_p: The p-values of Shapiro and Wilk's test of normality, one for each sample. They decide
            whether Welch's t-test or Mann and Whitney's test is used. None if a sample has fewer than 3
            values.
    """

    outcome: Outcome
    shapiro_p: tuple[float, float] | None


def compare_samples(a: Floats, b: Floats) -> Samples:
    """Test whether two independent samples differ, by Welch's t-test or Mann and Whitney's test.

    For example, the samples are a metric's values on validation folds and on test sets. The t-test is used if
    Shapiro and Wilk's test finds no deviation from normality in either sample (p >= 0.05).

    Args:
        a: (n,) values of the first sample.
        b: (m,) values of the second sample.

    Returns:
        The outcome of the test (its name, statistic and p-value), and the two p-values of Shapiro and Wilk's
        test. The p-value of the outcome is NaN in two cases:

        - A sample has fewer than 3 values. Then no test is made.
        - Both samples are constant, with different values. Then there is no spread to compare with.
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
    return Samples(Outcome(name, float(found.statistic), 1.0 if p != p else p), normal)
