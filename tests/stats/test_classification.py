"""Metrics equal those of scikit-learn; intervals of AUCs; pass rates."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simllm.errors import InputError
from simllm.stats.classification import (
    auc_interval,
    auc_with_covariance,
    average_pass_rate,
    binary_metrics,
    bootstrap,
    count,
    multiclass_metrics,
    pass_at_k,
)
from simllm.stats.intervals import Z
from simllm.stats.resampling import interval

counts = st.lists(st.integers(0, 30), min_size=6, max_size=6).filter(lambda cells: sum(cells) > 0)


@pytest.mark.filterwarnings("ignore:A single label was found")
@given(counts)
def test_metrics_of_two_classes_equal_scikit_learn(cells):
    from sklearn import metrics

    matrix = np.array(cells).reshape(2, 3)
    gold = np.repeat([0, 0, 0, 1, 1, 1], cells)
    predicted = np.repeat([0, 1, 2, 0, 1, 2], cells)
    assert (count(gold, predicted, 2) == matrix).all()
    found = binary_metrics(matrix)
    quiet = {"labels": [0], "average": "micro", "zero_division": 0}
    assert found["precision"] == pytest.approx(metrics.precision_score(gold, predicted, **quiet))
    assert found["f2"] == pytest.approx(metrics.fbeta_score(gold, predicted, beta=2, **quiet))
    assert found["mcc"] == pytest.approx(metrics.matthews_corrcoef(gold, predicted), abs=1e-9)
    assert all(-1 <= value <= 1 for value in found.values() if not np.isnan(value))


@pytest.mark.filterwarnings("ignore:A single label was found")
@given(st.lists(st.integers(0, 9), min_size=12, max_size=12).filter(lambda cells: sum(cells) > 0))
def test_metrics_of_three_classes_equal_scikit_learn(cells):
    from sklearn import metrics

    matrix = np.array(cells).reshape(3, 4)
    matrix[:, 3] = 0
    if not matrix.sum():
        return
    gold, predicted = np.indices((3, 4)).reshape(2, -1).repeat(matrix.ravel(), axis=1)
    found = multiclass_metrics(matrix)
    assert found["mcc"] == pytest.approx(metrics.matthews_corrcoef(gold, predicted), abs=1e-9)
    assert found["macro_f1"] == pytest.approx(
        metrics.f1_score(gold, predicted, average="macro", zero_division=0)
    )


def test_bootstrap_of_cells_agrees_with_resampled_items():
    matrix = np.array([[40, 10, 0], [20, 30, 0]])
    low, high = interval(bootstrap(matrix, binary_metrics)["mcc"], 100)
    gold, predicted = np.repeat([0, 0, 1, 1], [40, 10, 20, 30]), np.repeat([0, 1, 0, 1], [40, 10, 20, 30])
    random = np.random.default_rng(5)
    values = [
        float(binary_metrics(count(gold[rows], predicted[rows], 2))["mcc"])
        for rows in random.integers(0, 100, (4000, 100))
    ]
    assert (low, high) == pytest.approx(tuple(np.quantile(values, [0.025, 0.975])), abs=0.02)
    assert np.isnan(interval(bootstrap(np.array([[3, 1, 0], [0, 0, 0]]), binary_metrics)["kappa"], 4)).all()


def test_few_or_perfect_predictions_have_no_interval():
    perfect = bootstrap(np.array([[20, 0, 0], [0, 20, 0]]), binary_metrics)["mcc"]
    assert np.isnan(interval(perfect, 40)).all()
    few = bootstrap(np.array([[2, 1, 0], [0, 2, 0]]), binary_metrics)["mcc"]
    assert np.isnan(interval(few, 5)).all()


@pytest.mark.parametrize("passed", [[[True], []], [[True, False], [True]]])
def test_too_few_attempts_for_top_k_are_an_error(passed):
    with pytest.raises(
        InputError, match=f"TOP-2 needs 2 candidates of each item; an item has {len(min(passed, key=len))}"
    ):
        pass_at_k(passed, 2)


def test_an_item_without_attempts_has_no_average():
    with pytest.raises(InputError, match="an item has none"):
        average_pass_rate([[True], []])


def hanley_mcneil(t, n):
    """Return the variance of an AUC t with n positive and n negative items."""
    return t * (1 - t) * (1 + (n - 1) * ((1 - t) / (2 - t) + t / (1 + t))) / n**2


@pytest.mark.parametrize("n", [2, 5, 20, 500])
def test_a_perfect_auc_has_a_bounded_interval(n):
    positive = np.arange(2 * n) < n
    scores, folds = positive.astype(float), np.zeros(2 * n)
    area, low, high = auc_interval(positive, scores, folds)
    assert (area, high) == (1, 1)
    assert 1 - low == pytest.approx(Z * hanley_mcneil(low, n) ** 0.5)
    assert auc_interval(positive, -scores, folds) == pytest.approx((0, 0, 1 - low))
    wider = auc_interval(positive, scores, np.arange(2 * n) % n % 2)  # fewer pairs are compared
    assert n == 2 or wider[1] < low
    assert np.isnan(auc_interval(positive, 0 * scores, folds)[1:]).all()


def test_the_interval_of_an_auc_near_the_end_is_on_the_logit_scale():
    positive = np.arange(40) < 20
    scores = np.where(positive, 1.0, 0.0)
    scores[[0, 1]] = -1, 0.5  # one positive item is below all 20 negative ones: the AUC is .95
    area, low, high = auc_interval(positive, scores, np.zeros(40))
    assert area == pytest.approx(0.95)
    _, covariance = auc_with_covariance(positive, scores[None])
    reach = Z * covariance[0, 0] ** 0.5 / (0.95 * 0.05)
    assert np.log(19) - reach == pytest.approx(np.log(low / (1 - low)))
    assert np.log(19) + reach == pytest.approx(np.log(high / (1 - high)))
    assert auc_interval(positive, -scores, np.zeros(40)) == pytest.approx((0.05, 1 - high, 1 - low))


@pytest.mark.slow
@pytest.mark.parametrize(("n", "distance", "auc"), [(30, 2.326, 0.95), (50, 2.904, 0.98), (50, 3.290, 0.99)])
def test_intervals_near_the_end_cover_the_auc(n, distance, auc):
    random = np.random.default_rng(3)
    positive, covered = np.arange(2 * n) < n, 0
    for _ in range(1000):  # DeLong's interval covers it in 82 to 88% of them
        _, low, high = auc_interval(
            positive, random.normal(size=2 * n) + distance * positive, np.zeros(2 * n)
        )
        covered += low <= auc <= high
    assert covered >= 925


@pytest.mark.slow
def test_the_interval_of_a_high_auc_covers_it():
    random = np.random.default_rng(4)
    positive, folds, covered = np.arange(30) < 15, np.zeros(30), 0
    for _ in range(1000):  # more than a third of the AUCs are 1
        _, low, high = auc_interval(positive, random.normal(size=30) + 3.2 * positive, folds)
        covered += low <= 0.98817 <= high  # the normal distribution at 3.2 / sqrt(2)
    assert covered >= 950
