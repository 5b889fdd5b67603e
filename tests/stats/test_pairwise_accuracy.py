import itertools

import numpy as np
import pytest

from simllm.stats.correlation import pairwise_accuracy


def naive_pairwise_accuracy(scores, given):
    pairs = list(itertools.combinations(range(len(scores)), 2))
    differences = [scores[i] - scores[j] for i, j in pairs]
    best = 0.0
    for epsilon in [0.0, *map(abs, differences)]:
        order = [0 if abs(d) <= epsilon else np.sign(d) for d in differences]
        best = max(
            best, np.mean([o == np.sign(given[i] - given[j]) for o, (i, j) in zip(order, pairs, strict=True)])
        )
    return best


def test_pairwise_accuracy_equals_a_search_over_all_epsilons():
    random = np.random.default_rng(1)
    for _ in range(20):
        scores, given = random.integers(8, size=12) / 7, random.integers(1, 5, size=12).astype(float)
        assert pairwise_accuracy(scores, given) == pytest.approx(naive_pairwise_accuracy(scores, given))


def test_pairwise_accuracy_counts_ties_of_ratings():
    """The scores 0.50 and 0.51 belong to equal ratings. If they count as tied, all three pairs are right."""
    assert pairwise_accuracy(np.array([0.5, 0.51, 0.9]), np.array([2.0, 2.0, 4.0])) == 1
    assert pairwise_accuracy(np.array([0.9, 0.51, 0.5]), np.array([2.0, 2.0, 4.0])) == pytest.approx(1 / 3)


def test_pairwise_accuracy_of_a_sample_is_close_to_the_whole():
    random = np.random.default_rng(2)
    given = random.integers(1, 6, size=2100).astype(float)
    scores = given + random.normal(size=2100)
    i, j = np.triu_indices(2100, 1)
    naive = max(
        np.mean(
            np.where(np.abs(d := scores[i] - scores[j]) <= e, 0, np.sign(d)) == np.sign(given[i] - given[j])
        )
        for e in np.linspace(0.2, 1, 9)
    )
    assert pairwise_accuracy(scores, given) == pytest.approx(naive, abs=0.003)
