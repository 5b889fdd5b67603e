"""McNemar's test and Cochran's Q test, which compare the accuracies of classifiers on the same items.

McNemar's test compares two classifiers, and Cochran's Q test three or more. McNemar's test has an exact and
a chi-squared form.
"""

from __future__ import annotations

from simllm.array_types import Floats
from simllm.stats.significance_outcome import Outcome

FEW_DISCORDANT = 25  # McNemar's exact test is chosen for fewer discordant items


def choose_mcnemar(discordant: int) -> str:
    """Choose the exact or the chi-squared form of McNemar's test.

    Args:
        discordant: The number of items that exactly one of the two classifiers gets right.

    Returns:
        The name of the test: "mcnemar-exact" if `discordant` is below 25, otherwise "mcnemar-chi2".
    """
    return "mcnemar-exact" if discordant < FEW_DISCORDANT else "mcnemar-chi2"


def mcnemar(only_a: int, only_b: int) -> Outcome:
    """Compare the accuracy of two classifiers by McNemar's test (1947).

    The test uses the items that exactly one of the two classifiers gets right. For fewer than 25 such items,
    the exact form of the test is used; otherwise, the chi-squared form.

    Args:
        only_a: The number of items that only the first classifier gets right.
        only_b: The number of items that only the second classifier gets right.
    """
    from statsmodels.stats.contingency_tables import mcnemar as test

    name = choose_mcnemar(only_a + only_b)
    exact = name == "mcnemar-exact"
    found = test([[0, only_a], [only_b, 0]], exact=exact, correction=True)
    return Outcome(name, float(found.statistic), min(1.0, float(found.pvalue)), None if exact else 1)


def cochran_q(right: Floats) -> Outcome:
    """Compare the accuracy of three or more classifiers by Cochran's Q test (1950).

    Args:
        right: (n, k) array for n items and k classifiers: 1 if the classifier is right on the item, else 0.
    """
    from statsmodels.stats.contingency_tables import cochrans_q

    k = right.shape[1]
    if (right == right[:, :1]).all():
        return Outcome("cochran-q", 0.0, 1.0, k - 1)
    found = cochrans_q(right)
    return Outcome("cochran-q", float(found.statistic), float(found.pvalue), k - 1)
