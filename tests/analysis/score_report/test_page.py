"""The HTML page of a report and its figures: what they contain as a whole."""

import re

import numpy as np
import pytest

from simllm.analysis.score_report import ScoredPairs, render_report
from simllm.analysis.score_report.page import UNRELATED_TEXTS, draw_distribution
from tests.analysis.score_report.reports import data_of, run_of


def test_a_page_holds_all_pairs_of_a_small_run():
    run = run_of(40)
    data = data_of(render_report(run, "simllm score"))
    assert [pair["number"] for pair in data["pairs"]] == list(range(1, 41))
    assert [pair["scores"][0] for pair in data["pairs"]] == pytest.approx(run.main, abs=5e-5)
    assert data["total"] == 40


def test_texts_cannot_end_the_script_or_the_page():
    evil = "</script><script>alert(1)</script><!-- \u2028 \ud800"
    run = ScoredPairs([evil], {"": [evil]}, {"score": np.ones(1)}, ids=[evil], groups={evil: [evil]})
    page = render_report(run, evil)
    assert page.count("<script") == 2
    assert page.count("</script>") == 2
    assert data_of(page)["pairs"][0]["reference"] == evil


def test_without_any_score_a_page_is_still_made():
    missing = np.array([np.nan, np.nan, np.nan])
    scores = {"codebleu": missing, "rpsr": missing, "jaccard": np.ones(3)}
    page = render_report(ScoredPairs(["a", "b", "c"], {"": ["a", "b", "d"]}, scores), "")
    assert "The mean score of 3 pairs is n/a." in page
    assert page.count("= n/a</figcaption>") == 2


def test_the_report_of_a_metric_whose_lower_scores_are_better_says_so():
    scores = {"rps": np.array([9.0, 1.0, 4.0]), "jaccard": np.array([0.9, 0.1, 0.4])}
    texts = {"": ["opens the file", "combines 2 arrays", "logs"]}
    run = ScoredPairs(["closes the file", "adds two lists", "writes a log"], texts, scores)
    page = render_report(run, "")
    assert "The mean score of 3 pairs is 4.667 (95% interval -5.373 to 14.706); lower is better." in page
    assert data_of(page)["lowerIsBetter"]
    assert np.argmax(run.surprise) == 0  # common words, but a high score, which is bad


def test_a_single_pair_is_written_in_the_singular():
    page = render_report(run_of(1), "")
    assert page.count("Scores of 1 pair<") == 2  # the title and the heading
    assert "The mean score of 1 pair is" in page
    assert "The only pair is here." in page
    assert not re.search(r"\b1 pairs", page)


def test_a_field_with_the_name_of_the_counted_words_is_shown_beside_them():
    page = render_report(run_of(4, groups={"words in the reference": ["a", "b", "a", "b"]}), "")
    data = data_of(page)
    assert data["fields"] == ["words in the reference", "words in the reference (counted)"]
    assert data["pairs"][0]["groups"] == ["a", "5"]
    assert "<h3>By words in the reference</h3>" in page
    assert "<h3>words in the reference (counted)</h3>" in page


def test_the_page_states_the_rules_of_its_notes(default_metric):
    run = run_of(40, calibration=default_metric.calibration, same={"score": np.ones(40)})
    page = render_report(run, "")
    text = re.sub("<script.*|<[^>]*>", "", page, flags=re.DOTALL)
    assert 'meaning may have changed: the score is at least .4, but "same" is below .3.' in text
    assert "as little in common as unrelated texts" in text
    assert "random pairs" not in text
    assert "Press the name of a column of numbers to sort by it." in text


def test_the_legend_has_all_systems(recwarn):
    names = ["_hidden", "$x$", "\u65e5\u672c", "unrelated texts"]
    scores = {name: np.array([0.2, 0.4]) for name in names}
    run = ScoredPairs(["a", "b"], {name: ["a", "c"] for name in names}, scores)
    figure = draw_distribution(run)
    assert all(f">{name}</text>" in figure for name in names)
    assert not recwarn.list  # the font of matplotlib lacks some glyphs, but the browser has them


def contrast(first, second):
    """Return the contrast of two colours such as "#ffffff", from 1 to 21, as WCAG defines it."""

    def luminance(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return np.dot(linear, [0.2126, 0.7152, 0.0722])

    low, high = sorted(map(luminance, (first, second)))
    return (high + 0.05) / (low + 0.05)


def test_the_distribution_has_contrast_and_numbers_without_a_zero(default_metric):
    figure = draw_distribution(run_of(40, calibration=default_metric.calibration))
    assert contrast(UNRELATED_TEXTS, "#ffffff") > 3
    assert f"fill: {UNRELATED_TEXTS}" in figure
    assert {">.2</text>", ">1</text>"} <= set(re.findall(">[^<>]*</text>", figure))
    assert ">0." not in figure
