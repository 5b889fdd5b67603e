"""The HTML page of a report: its sentences, and the pairs that it contains."""

import dataclasses
import json
import re

import numpy as np
import pytest

from simllm.analysis.comparison import compare_scores
from simllm.analysis.explanation import explain
from simllm.analysis.run_report import ScoredRun, render_report
from simllm.analysis.run_report.changing_words import find_changing_words
from simllm.analysis.run_report.report_plots import UNRELATED_TEXTS, draw_distribution
from simllm.analysis.run_report.shown_pairs import (
    LONGEST_EXPLAINED,
    MOST,
    choose_pairs,
    describe_choice,
    number_of_explained,
)
from simllm.analysis.run_report.too_long_texts import find_long_texts
from simllm.metric import SimLLM


@pytest.fixture(scope="module")
def default_metric():
    return SimLLM()


def data_of(page):
    """Return the data about pairs that a page contains as JSON, for its script."""
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


def test_large_ids_keep_all_digits_and_long_ids_are_cut():
    ids = [2**53, 7, True, "k", [{"a": -(2**60)}, 1], "f" * 9_000]
    run = run_of(6, ids=ids)
    shown = [pair["id"] for pair in data_of(render_report(run, ""))["pairs"]]
    # JavaScript would round the first number, and that in the list.
    assert shown[:5] == ["9007199254740992", 7, True, "k", [{"a": "-1152921504606846976"}, 1]]
    assert shown[5].endswith("f … (9,000 characters)")
    assert len(shown[5]) < 2_100


def test_the_legend_has_all_systems(recwarn):
    names = ["_hidden", "$x$", "\u65e5\u672c", "unrelated texts"]
    scores = {name: np.array([0.2, 0.4]) for name in names}
    run = ScoredRun(["a", "b"], {name: ["a", "c"] for name in names}, scores)
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


def items(page):
    """Return the list items of a page, which are the sentences at its top."""
    return re.findall("<li>(.*?)</li>", page)


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


def test_pairs_with_a_cut_text_are_marked_in_the_data():
    run = ScoredRun(["a " * 1_001, "a " * 1_000], {"": ["b", "b"]}, {"score": np.ones(2)})
    page = render_report(run, "")
    assert ["cut" in pair for pair in data_of(page)["pairs"]] == [True, False]
    assert "No word of the pair is marked as missing." in page
    assert "No word of the pair" not in render_report(run_of(3), "")


def test_the_scores_of_each_system_are_put_into_words(default_metric):
    scale = default_metric.calibration
    scores = {"good": np.array([0.9, 0.8, 0.7]), "bad": np.array([0.9, -0.1, 0.0])}
    run = ScoredRun(["a"] * 3, {name: ["b"] * 3 for name in scores}, scores, calibration=scale)
    sentences = items(render_report(run, "", compare_scores(scores)))
    assert sentences[0].startswith("good has the highest mean score")
    assert "No pair scores below ." in sentences[1]
    rating = scale.rating(scores["bad"]).mean()
    assert sentences[1].startswith("good: the mean is above 99.9% of the scores of unrelated texts.")
    assert f"The estimated human rating is {rating:.1f}. 2 pairs (67%) score below ." in sentences[2]
    assert sentences[3].startswith("95% of unrelated texts score below .")
    assert f"from {scale.ratings[0]:.1f} to {scale.ratings[-1]:.1f}" in sentences[4]


def test_a_sentence_counts_the_pairs_that_may_be_unrelated(default_metric):
    scores = {"score": np.array([0.9, 0.0, 0.1])}
    run = ScoredRun(["a"] * 3, {"": ["b"] * 3}, scores, calibration=default_metric.calibration)
    page = render_report(run, "")
    assert items(page)[2].startswith("2 pairs (67%) may be of unrelated texts: they score below .")
    assert [pair.get("unrelated") for pair in data_of(page)["pairs"]] == [None, True, True]
    assert "Unrelated texts score around -.0" in page
    high = dataclasses.replace(run, scores={"score": np.full(3, 0.9)})
    assert items(render_report(high, ""))[2].startswith("No pair scores below .")


def test_the_page_states_the_rules_of_its_notes(default_metric):
    run = run_of(40, calibration=default_metric.calibration, same={"score": np.ones(40)})
    page = render_report(run, "")
    text = re.sub("<script.*|<[^>]*>", "", page, flags=re.DOTALL)
    assert 'meaning may have changed: the score is at least .5, but "same" is below .3.' in text
    assert "as little in common as unrelated texts" in text
    sentence = (
        r"On average, people would rate the similarity \d\.\d \(estimated on a scale from 1\.0 to 3\.\d\)"
    )
    assert re.search(sentence, text)
    assert "random pairs" not in text
    assert "Press the name of a column of numbers to sort by it." in text


def test_without_a_learned_metric_a_high_score_is_above_the_median():
    scores = {"rps": np.array([9.0, 1.0, 4.0])}
    page = render_report(ScoredRun(["a"] * 3, {"": ["b"] * 3}, scores), "")
    assert data_of(page)["worstGoodScore"] == 4
    assert "There, a score is low up to 4.000, the median." in page


def test_long_texts_are_found_in_every_column(default_metric):
    long = "opens the file " * 200
    run = ScoredRun(["a", long, "c"], {"x": ["a", "b", "c"], "y": ["a", "b", long]}, {"x": np.ones(3)})
    metrics = {"x": default_metric, "y": default_metric}
    assert find_long_texts(metrics, run) == [1, 2]
    assert find_long_texts({}, run) == []
    found = dataclasses.replace(run_of(3), truncated=2, long_texts=[1, 2])
    assert "In 2 pairs (67%), a text is longer than the model reads." in render_report(found, "")


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        (range(20), "Longer references score higher (Spearman&#39;s \u03c1 = 1.000, p &lt; .001)."),
        (range(20, 0, -1), "Longer references score lower (Spearman&#39;s \u03c1 = -1.000, p &lt; .001)."),
        ([1, 2] * 10, "There is no sign that longer references score higher or lower (Spearman&#39;s"),
    ],
)
def test_a_sentence_says_whether_scores_rise_with_the_length_and_with_numbers(scores, expected):
    references = ["word " * (i + 1) for i in range(20)]
    groups = {"stars": [f"{i} to {i + 1}" for i in range(20)], "name": ["a", "1"] * 10}
    run = ScoredRun(references, {"": references}, {"score": np.array(scores, float)}, groups=groups)
    page = render_report(run, "")
    assert f"<p>{expected}" in page
    assert page.count("with a larger number of stars score") == 1
    assert "number of name" not in page


def test_a_field_with_huge_or_equal_numbers_is_compared_or_left_out():
    groups = {"size": [str(10**400 + i) for i in range(5)], "one": ["7"] * 5}
    run = ScoredRun(["a"] * 5, {"": ["b"] * 5}, {"score": np.arange(5) / 5}, groups=groups)
    page = render_report(run, "")
    assert "Pairs with a larger number of size score higher" in page
    assert "number of one" not in page


def flagged_run(pairs, metric):
    candidates, references = (list(texts) for texts in zip(*pairs, strict=True))
    scores = metric.score(candidates, references)
    changed = {"score": scores.changed}
    return ScoredRun(references, {"": candidates}, {"score": scores.values}, {"score": scores.same}, changed)


def test_changing_words_are_those_of_explain(default_metric):
    pairs = [
        ("opens the file", "closes the file"),
        ("adds two lists", "combines 2 arrays"),
        ("returns whether the list is not empty", "returns whether the list is empty"),
    ]
    run = flagged_run(pairs, default_metric)
    found = find_changing_words({"score": default_metric}, run)
    flagged = np.flatnonzero(run.changed["score"]).tolist()
    assert 2 in flagged
    assert 1 not in flagged
    expected = {i: explain(default_metric, *pairs[i]).changing_words for i in flagged}
    assert found == {"score": expected}
    assert "not" in expected[2]
    page = render_report(dataclasses.replace(run, changed_by=found), "")
    assert [pair.get("changedBy") for pair in data_of(page)["pairs"]] == [
        [expected[i]] if i in expected else None for i in range(3)
    ]
    assert "looked for in" in page
    assert "looked for in" not in render_report(run, "")


def test_only_few_short_pairs_are_explained(default_metric):
    word = ["red", "blue", "green", "small", "large", "old", "new", "first", "last", "best", "worst", "left"]
    pairs = [(f"closes the {one} file", f"opens the {one} file") for one in word]
    pairs.append(("opens the file " * 11, "closes the file " * 11))
    run = flagged_run(pairs, default_metric)
    changed = {"score": np.ones(len(pairs), bool)}
    run = dataclasses.replace(run, changed=changed)
    found = find_changing_words({"score": default_metric}, run)["score"]
    assert len(pairs[-1][0].split()) > LONGEST_EXPLAINED
    best = np.argsort(-run.main[:-1], kind="stable")[:10]
    assert sorted(found) == sorted(best.tolist())
    assert [number_of_explained(n) for n in (1, 2_000, 3_000, 10**6)] == [10, 10, 15, 25]
    page = render_report(dataclasses.replace(run, changed_by={"score": found}), "")
    assert (
        "these words are looked for in 10 pairs of texts among the 13 whose meaning may have changed" in page
    )


def test_metrics_that_cannot_be_explained_name_no_words(default_metric):
    run = flagged_run([("opens the file", "closes the file")], default_metric)
    by_token = SimLLM(similarity="f1")
    assert find_changing_words({"score": by_token}, run) == {}
    assert find_changing_words({"another": default_metric}, run) == {}
