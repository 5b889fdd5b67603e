"""The page of a report: what it says, and which pairs it holds."""

import json
import re

import numpy as np
import pytest

from simllm.analysis.run_report import ScoredRun, render_report
from simllm.analysis.run_report.pair_sample import MOST, choose_pairs, describe_choice
from simllm.analysis.run_report.score_figures import draw_distribution


def data_of(page):
    """Return the pairs that a page holds for its script."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    return json.loads(found[1])


def run_of(n, **values):
    random = np.random.default_rng(0)
    references = [f"returns the value number {i % 7}" for i in range(n)]
    candidates = [f"gets value {i % 5}" for i in range(n)]
    return ScoredRun(references, {"": candidates}, {"score": random.uniform(-0.1, 1, n)}, **values)


def test_a_page_holds_all_pairs_of_a_small_run():
    run = run_of(40)
    data = data_of(render_report(run, "simllm score"))
    assert [pair["number"] for pair in data["pairs"]] == list(range(1, 41))
    assert [pair["scores"][0] for pair in data["pairs"]] == pytest.approx(run.main, abs=5e-5)
    assert data["total"] == 40


def test_a_page_holds_the_most_telling_pairs_of_a_large_run():
    n = 3 * MOST
    same = np.random.default_rng(1).uniform(0, 1, n)
    run = run_of(n, same={"score": same}, changed={"score": same < 0.01})
    chosen = choose_pairs(run)
    assert len(chosen) == len({*chosen}) == MOST
    order = np.argsort(run.main)
    assert {*order[:500], *order[-500:], *np.flatnonzero(same < 0.01)} <= {*chosen}
    assert np.array_equal(chosen, choose_pairs(run))
    assert f"{MOST:,} of the {n:,} pairs" in describe_choice(run)
    # The rest is random: its mean score is near that of all pairs.
    rest = np.setdiff1d(chosen, np.concatenate([order[:500], order[-500:]]))
    assert run.main[rest].mean() == pytest.approx(run.main.mean(), abs=0.03)


def test_texts_cannot_end_the_script_or_the_page():
    evil = "</script><script>alert(1)</script><!-- \u2028 \ud800"
    run = ScoredRun([evil], {"": [evil]}, {"score": np.ones(1)}, ids=[evil], groups={evil: [evil]})
    page = render_report(run, evil)
    assert page.count("<script") == 2
    assert page.count("</script>") == 2
    assert data_of(page)["pairs"][0]["reference"] == evil


def test_long_texts_are_cut_and_missing_scores_are_null():
    scores = {"simllm": np.array([0.5, 0.25]), "bleu": np.array([np.nan, np.nan])}
    run = ScoredRun(["a " * 25_000, ""], {"": ["a", "b"]}, scores)
    first, second = data_of(render_report(run, ""))["pairs"]
    assert first["reference"].endswith("(50,000 characters)")
    assert len(first["reference"]) < 2100
    assert first["scores"] == [0.5, None]
    assert (first["empty"], second["empty"]) == (False, True)


def test_without_any_score_a_page_is_still_made():
    missing = np.array([np.nan, np.nan, np.nan])
    scores = {"codebleu": missing, "rpsr": missing, "jaccard": np.ones(3)}
    page = render_report(ScoredRun(["a", "b", "c"], {"": ["a", "b", "d"]}, scores), "")
    assert "The mean score of 3 pairs is n/a." in page
    assert page.count("= n/a</figcaption>") == 2


def test_the_report_of_a_metric_whose_lower_scores_are_better_says_so():
    scores = {"rps": np.array([9.0, 1.0, 4.0]), "jaccard": np.array([0.9, 0.1, 0.4])}
    texts = {"": ["opens the file", "combines 2 arrays", "logs"]}
    run = ScoredRun(["closes the file", "adds two lists", "writes a log"], texts, scores)
    page = render_report(run, "")
    assert "The mean score of 3 pairs is 4.667 (95% interval -5.373 to 14.706); lower is better." in page
    assert data_of(page)["lowerIsBetter"]
    assert np.argmax(run.surprise) == 0  # common words, but a high score, which is bad


def test_surprising_pairs_share_words_but_score_low():
    run = ScoredRun(
        ["opens the file", "adds two lists", "writes a log"],
        {"": ["closes the file", "combines 2 arrays", "logs"]},
        {"score": np.array([0.1, 0.9, 0.5])},
    )
    assert np.argmax(run.surprise) == 0
    assert np.argmin(run.surprise) == 1


def test_large_ids_keep_all_digits():
    ids = [2**53, 7, True, "k"]
    run = run_of(4, ids=ids)
    shown = [pair["id"] for pair in data_of(render_report(run, ""))["pairs"]]
    assert shown == ["9007199254740992", 7, True, "k"]  # JavaScript would round the first number


def test_the_legend_has_all_systems(recwarn):
    names = ["_hidden", "$x$", "\u65e5\u672c", "random pairs"]
    scores = {name: np.array([0.2, 0.4]) for name in names}
    run = ScoredRun(["a", "b"], {name: ["a", "c"] for name in names}, scores)
    figure = draw_distribution(run)
    assert all(f">{name}</text>" in figure for name in names)
    assert not recwarn.list  # the font of matplotlib lacks some glyphs, but the browser has them
