"""Significance tests, and the choice between them, equal reference results."""

import json

import numpy as np
import pytest

from simllm.stats.classification import auc_interval, auc_with_covariance, compare_aucs
from simllm.stats.intervals import Z, mean_interval
from simllm.stats.resampling import bootstrap_p, interval, paired_permutation
from simllm.stats.significance import (
    choose_for_classifiers,
    choose_for_degradation,
    choose_for_groups,
    cochran_q,
    compare_groups,
    compare_samples,
    compare_with_chance,
    friedman_nemenyi,
    holm,
    mcnemar,
    wilcoxon,
)


@pytest.fixture(scope="module")
def cases(shared):
    return json.loads((shared / "reference" / "protocol.json").read_text())["cases"]


def close(found, expected, tolerance=1e-9):
    assert found == pytest.approx(expected, abs=tolerance)


def check_test(case):
    given, expected = case["input"], case["expected"]
    match case["test"]:
        case "mcnemar":
            found = mcnemar(given["only_a_right"], given["only_b_right"])
        case "cochran-q":
            found = cochran_q(np.array(given["right"]))
        case "wilcoxon":
            found = wilcoxon(np.array(given["a"]), np.array(given["b"]))
        case "groups":
            found = compare_groups(given["right_wrong"])
        case "chance":
            found = compare_with_chance(given["right"], given["n"], given["chance"])
        case "independent-samples":
            found, shapiro = compare_samples(np.array(given["a"]), np.array(given["b"]))
            close(shapiro, expected["shapiro_p"])
        case "friedman-nemenyi":
            ranks = friedman_nemenyi(np.array(given["values"]))
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
        "classifiers": choose_for_classifiers,
        "groups": choose_for_groups,
        "degradation": choose_for_degradation,
        "chance": lambda **_: compare_with_chance(1, 2, 0.5).test,
    }
    for case in rows:
        design = dict(case["design"])
        assert choose[design.pop("question")](**design) == case["expected"], case


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


@pytest.mark.slow
def test_the_interval_of_a_high_auc_covers_it():
    random = np.random.default_rng(4)
    positive, folds, covered = np.arange(30) < 15, np.zeros(30), 0
    for _ in range(1000):  # more than a third of the AUCs are 1
        _, low, high = auc_interval(positive, random.normal(size=30) + 3.2 * positive, folds)
        covered += low <= 0.98817 <= high  # the normal distribution at 3.2 / sqrt(2)
    assert covered >= 950


def test_missing_values_have_no_p_value():
    differences = np.array([0.2, np.nan, 0.1])
    assert np.isnan(paired_permutation(differences).p)
    assert np.isnan(bootstrap_p(differences, 3))


def test_intervals_that_would_look_too_certain_are_undefined():
    values = np.linspace(0, 1, 101)
    assert np.isnan(interval(values, 5)).all()
    assert interval(values, 6) == pytest.approx((0.025, 0.975))
    assert np.isnan(interval(np.full(100, 0.5), 50)).all()
    assert np.isnan(mean_interval(np.array([0.3, 0.3, 0.3]))).all()
    assert np.isnan(mean_interval(np.array([0.3]))).all()
    assert mean_interval(np.array([1.0, 2.0, 3.0])) == pytest.approx((-0.48414, 4.48414), abs=1e-5)
