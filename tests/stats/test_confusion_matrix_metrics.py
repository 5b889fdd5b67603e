"""Metrics of a confusion matrix equal those of scikit-learn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simllm.stats.classification import binary_metrics, count, multiclass_metrics

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
