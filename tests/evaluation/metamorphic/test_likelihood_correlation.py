"""The correlation between the likelihood of code and the effect of rewriting it."""

import pytest
from scipy.stats import spearmanr

from simllm.evaluation.metamorphic.item_outcome import ItemOutcome
from simllm.evaluation.metamorphic.likelihood_correlation import correlate_with_likelihood


def outcome(number, nll, original, transformed):
    return ItemOutcome(str(number), original, transformed, nll)


def test_equal_effects_have_equal_ranks():
    """0.7 - 0.4 and 0.3 - 0 are one effect, though the floating-point numbers differ."""
    rates = [
        ((4, 10), (7, 10)),
        ((0, 10), (3, 10)),
        ((4, 10), (7, 10)),
        ((0, 10), (3, 10)),
        ((9, 10), (0, 10)),
    ]
    assert 0.7 - 0.4 != 0.3
    found = correlate_with_likelihood([outcome(i, float(i), *rate) for i, rate in enumerate(rates)])
    expected = spearmanr(range(5), [3, 3, 3, 3, -9])
    assert found.all.rho == pytest.approx(expected.statistic)
    assert found.all.p == pytest.approx(expected.pvalue)


def test_items_without_a_likelihood_are_left_out():
    outcomes = [outcome(i, float(i), (1, 2), (i % 2, 2)) for i in range(6)]
    unknown = [outcome(9, None, (2, 2), (0, 2))]
    assert correlate_with_likelihood(outcomes + unknown) == correlate_with_likelihood(outcomes)
    assert correlate_with_likelihood(unknown) is None


def test_too_few_or_equal_items_have_no_correlation():
    few = correlate_with_likelihood([outcome(i, float(i), (1, 2), (i, 2)) for i in range(2)])
    equal = correlate_with_likelihood([outcome(i, float(i), (1, 2), (1, 2)) for i in range(5)])
    assert (few.all.n, few.all.rho, few.all.p) == (2, None, None)
    assert (equal.all.n, equal.all.rho, equal.all.p) == (5, None, None)
