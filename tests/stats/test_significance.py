"""Significance tests, and the choice between them, equal reference results."""

import json

import numpy as np
import pytest
from scipy.stats import binomtest, spearmanr, ttest_ind

from simllm.stats.classification import auc_with_covariance, compare_aucs
from simllm.stats.significance import (
    choose_for_classifiers,
    choose_for_degradation,
    choose_for_groups,
    cochran_q,
    compare_groups,
    compare_samples,
    compare_with_chance,
    fisher,
    friedman_nemenyi,
    holm,
    holm_of_pairs,
    mcnemar,
    rank_correlation,
    welch,
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


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]


def test_impossible_tests_are_no_members_of_the_family():
    nan = float("nan")
    assert holm([0.01, nan, 0.04, 0.03]) == pytest.approx([0.03, nan, 0.06, 0.06], nan_ok=True)
    assert np.isnan(holm([nan, nan])).all()
    assert holm([]) == []


def test_holm_of_pairs_by_hand():
    p = np.array([[1, 0.01, 0.04], [0.01, 1, 0.03], [0.04, 0.03, 1]])
    assert holm_of_pairs(p) == pytest.approx(np.array([[1, 0.03, 0.06], [0.03, 1, 0.06], [0.06, 0.06, 1]]))


def test_noise_of_arithmetic_breaks_no_tie_in_friedmans_test():
    values = np.array([[0.3, 0.3, 0.1], [0.5, 0.5, 0.2], [0.4, 0.4, 0.6]])
    noisy = values + np.array([[0, 5e-17, 0], [1e-16, 0, 0], [0, 6e-17, 0]])
    assert not np.array_equal(noisy, values)
    assert friedman_nemenyi(noisy).outcome == friedman_nemenyi(values).outcome


def test_fisher_has_no_odds_ratio_without_failures():
    assert fisher([[3, 0], [5, 0]]).p == 1
    assert np.isnan(fisher([[3, 0], [5, 0]]).statistic)
    assert fisher([[3, 0], [0, 3]]).statistic == np.inf


def test_the_exact_form_of_mcnemar_can_be_chosen_for_many_items():
    assert mcnemar(20, 10).test == "mcnemar-chi2"
    found = mcnemar(20, 10, "mcnemar-exact")
    assert found.p == pytest.approx(binomtest(10, 30).pvalue)
    assert mcnemar(0, 0).p == 1


def test_welch_needs_an_error_to_compare_with():
    assert welch(np.ones(3), np.ones(4)).p == 1
    assert np.isnan(welch(np.ones(3), np.zeros(4)).p)
    a, b = np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 9.0])
    assert welch(a, b).p == ttest_ind(a, b, equal_var=False).pvalue


def test_rank_correlation_leaves_out_missing_values():
    a, b = np.array([1.0, np.nan, 3.0, 4.0, 2.0]), np.array([1.0, 9.0, 3.0, 5.0, np.nan])
    assert rank_correlation(a, b).statistic == pytest.approx(1)
    a, b = np.array([4.0, 1.0, 3.0, 2.0, 5.0]), np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    assert rank_correlation(a, b).p == spearmanr(a, b).pvalue
    assert np.isnan(rank_correlation(a[:2], b[:2])[1:3]).all()
    assert np.isnan(rank_correlation(np.ones(5), b)[1:3]).all()
