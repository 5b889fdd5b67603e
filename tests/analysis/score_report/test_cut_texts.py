"""Very long texts and ids are cut on the page of a report."""

import numpy as np

from simllm.analysis.score_report import ScoredPairs, render_report
from tests.analysis.score_report.report_page_data import data_of, run_of


def test_long_texts_are_cut_and_missing_scores_are_null():
    scores = {"simllm": np.array([0.5, 0.25]), "bleu": np.array([np.nan, np.nan])}
    run = ScoredPairs(["a " * 25_000, ""], {"": ["a", "b"]}, scores)
    first, second = data_of(render_report(run, ""))["pairs"]
    assert first["reference"].endswith("(50,000 characters)")
    assert len(first["reference"]) < 2100
    assert first["scores"] == [0.5, None]
    assert (first["empty"], second["empty"]) == (False, True)


def test_large_ids_keep_all_digits_and_long_ids_are_cut():
    ids = [2**53, 7, True, "k", [{"a": -(2**60)}, 1], "f" * 9_000]
    run = run_of(6, ids=ids)
    shown = [pair["id"] for pair in data_of(render_report(run, ""))["pairs"]]
    # JavaScript would round the first number, and that in the list.
    assert shown[:5] == ["9007199254740992", 7, True, "k", [{"a": "-1152921504606846976"}, 1]]
    assert shown[5].endswith("f … (9,000 characters)")
    assert len(shown[5]) < 2_100


def test_pairs_with_a_cut_text_are_marked_in_the_data():
    run = ScoredPairs(["a " * 1_001, "a " * 1_000], {"": ["b", "b"]}, {"score": np.ones(2)})
    page = render_report(run, "")
    assert ["cut" in pair for pair in data_of(page)["pairs"]] == [True, False]
    assert "No word of the pair is marked as missing." in page
    assert "No word of the pair" not in render_report(run_of(3), "")
