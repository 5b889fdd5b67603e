"""McNemar's test and Cochran's Q test, which compare two or more classifiers on the same items."""

from __future__ import annotations

from simllm.array_types import Floats
from simllm.stats.significance_outcome import Outcome

FEW_DISCORDANT = 25  # McNemar's exact test is chosen for fewer discordant items


def choose_mcnemar(discordant: int) -> str:
    """Choose the exact or the chi-squared form of McNemar's test by the number of discordant items."""
    return "mcnemar-exact" if discordant < FEW_DISCORDANT else "mcnemar-chi2"


def mcnemar(only_a: int, only_b: int) -> Outcome:
    """Compare the accuracy of two classifiers by McNemar's test (1947).

    The arguments count the items that only the first, or only the second, classifier gets right.
    """
    from statsmodels.stats.contingency_tables import mcnemar as test

    name = choose_mcnemar(only_a + only_b)
    exact = name == "mcnemar-exact"
    found = test([[0, only_a], [only_b, 0]], exact=exact, correction=True)
    return Outcome(name, float(found.statistic), min(1.0, float(found.pvalue)), None if exact else 1)


def cochran_q(right: Floats) -> Outcome:
    """Compare three or more classifiers by Cochran's Q test (1950); `right` is (n, k), 0 or 1."""
    from statsmodels.stats.contingency_tables import cochrans_q

    k = right.shape[1]
    # Without a discordant item, statistic and p would be 0 / 0.
    if (right == right[:, :1]).all():
        return Outcome("cochran-q", 0.0, 1.0, k - 1)
    found = cochrans_q(right)
    return Outcome("cochran-q", float(found.statistic), float(found.pvalue), k - 1)
