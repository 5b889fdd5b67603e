import numpy as np
import pytest

from simllm.stats.classification import binary_metrics, bootstrap, count, quantiles


def test_bootstrap_of_cells_agrees_with_resampled_items():
    matrix = np.array([[40, 10, 0], [20, 30, 0]])
    low, high = quantiles(bootstrap(matrix, binary_metrics)["mcc"], 100)
    gold, predicted = np.repeat([0, 0, 1, 1], [40, 10, 20, 30]), np.repeat([0, 1, 0, 1], [40, 10, 20, 30])
    random = np.random.default_rng(5)
    values = [
        float(binary_metrics(count(gold[rows], predicted[rows], 2))["mcc"])
        for rows in random.integers(0, 100, (4000, 100))
    ]
    assert (low, high) == pytest.approx(tuple(np.quantile(values, [0.025, 0.975])), abs=0.02)
    assert np.isnan(quantiles(bootstrap(np.array([[3, 1, 0], [0, 0, 0]]), binary_metrics)["kappa"], 4)).all()


def test_few_or_perfect_predictions_have_no_interval():
    perfect = bootstrap(np.array([[20, 0, 0], [0, 20, 0]]), binary_metrics)["mcc"]
    assert np.isnan(quantiles(perfect, 40)).all()
    few = bootstrap(np.array([[2, 1, 0], [0, 2, 0]]), binary_metrics)["mcc"]
    assert np.isnan(quantiles(few, 5)).all()
