"""Metrics, calibration and tests of classifiers equal reference results and those of other libraries."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simllm.stats import choice_of_test, contingency_tests, rank_tests
from simllm.stats.confusion_matrix_metrics import (
    binary_metrics,
    bootstrap,
    count,
    multiclass_metrics,
    quantiles,
)
from simllm.stats.delong_auc import auc_with_covariance, compare_aucs
from simllm.stats.multiple_testing import holm


@pytest.fixture(scope="module")
def cases(shared):
    return json.loads((shared / "reference" / "protocol.json").read_text())["cases"]


def close(found, expected, tolerance=1e-9):
    assert found == pytest.approx(expected, abs=tolerance)


def check_test(case):
    given, expected = case["input"], case["expected"]
    match case["test"]:
        case "mcnemar":
            found = contingency_tests.mcnemar(given["only_a_right"], given["only_b_right"])
        case "cochran-q":
            found = contingency_tests.cochran_q(np.array(given["right"]))
        case "wilcoxon":
            found = rank_tests.wilcoxon(np.array(given["a"]), np.array(given["b"]))
        case "groups":
            found = contingency_tests.compare_groups(given["right_wrong"])
        case "chance":
            found = contingency_tests.compare_with_chance(given["right"], given["n"], given["chance"])
        case "independent-samples":
            found, shapiro = rank_tests.compare_samples(np.array(given["a"]), np.array(given["b"]))
            close(shapiro, expected["shapiro_p"])
        case "friedman-nemenyi":
            ranks = rank_tests.friedman_nemenyi(np.array(given["values"]))
            found = ranks.outcome
            close(ranks.mean_ranks.tolist(), expected["mean_ranks"])
            close(ranks.critical_difference, expected["critical_difference"], 1e-3)
            close(ranks.p, np.array(expected["nemenyi_p"]), 1e-3)
        case "holm":
            close(holm(given["p"]), expected["p_holm"])
            return
        case "delong":
            gold, scores = np.array(given["gold"]) == 1, np.array([given["a"], given["b"]])
            close(auc_with_covariance(gold, scores)[0].tolist(), expected["auc"])
            difference, _, z, p = compare_aucs(gold, scores)
            close((difference, z, p), (expected["difference"], expected["z"], expected["p"]))
            return
    assert found.test == expected.get("test", found.test)
    close(found.p, expected["p"], expected.get("tolerance_of_p", 1e-9))
    if "statistic" in expected:
        close(found.statistic, expected["statistic"])
    if "df" in expected:
        assert found.df == expected["df"]


def test_tests_agree_with_the_reference_vectors(cases):
    rows = [case for case in cases if case["kind"] == "test"]
    assert len(rows) == 29
    for case in rows:
        check_test(case)


def test_choices_agree_with_the_reference_vectors(cases):
    rows = [case for case in cases if case["kind"] == "choice"]
    assert len(rows) == 14
    choose = {
        "classifiers": choice_of_test.choose_for_classifiers,
        "groups": choice_of_test.choose_for_groups,
        "degradation": choice_of_test.choose_for_degradation,
        "chance": lambda **_: contingency_tests.compare_with_chance(1, 2, 0.5).test,
    }
    for case in rows:
        design = dict(case["design"])
        assert choose[design.pop("question")](**design) == case["expected"], case


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
    low, high = quantiles(bootstrap(matrix, binary_metrics)["mcc"])
    gold, predicted = np.repeat([0, 0, 1, 1], [40, 10, 20, 30]), np.repeat([0, 1, 0, 1], [40, 10, 20, 30])
    random = np.random.default_rng(5)
    values = [
        float(binary_metrics(count(gold[rows], predicted[rows], 2))["mcc"])
        for rows in random.integers(0, 100, (4000, 100))
    ]
    assert (low, high) == pytest.approx(tuple(np.quantile(values, [0.025, 0.975])), abs=0.02)
    assert np.isnan(quantiles(bootstrap(np.array([[3, 1, 0], [0, 0, 0]]), binary_metrics)["kappa"])).all()


def test_noise_of_arithmetic_breaks_no_tie_in_friedmans_test():
    values = np.array([[0.3, 0.3, 0.1], [0.5, 0.5, 0.2], [0.4, 0.4, 0.6]])
    noisy = values + np.array([[0, 5e-17, 0], [1e-16, 0, 0], [0, 6e-17, 0]])
    assert not np.array_equal(noisy, values)
    assert rank_tests.friedman_nemenyi(noisy).outcome == rank_tests.friedman_nemenyi(values).outcome
