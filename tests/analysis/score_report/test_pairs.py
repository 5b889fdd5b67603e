"""The pairs of a report: cut texts, flags, word overlap, explained pairs, and the choice of those to show."""

import dataclasses
import json

import numpy as np
import pytest

from simllm.analysis.explanation import explain
from simllm.analysis.score_report import ScoredPairs, render_report
from simllm.analysis.score_report.pairs import (
    LONGEST_EXPLAINED,
    MOST,
    choose_pairs,
    describe_choice,
    explain_changed_pairs,
    find_long_texts,
    number_of_explained,
    word_overlap,
)
from simllm.cli.main import main
from simllm.metric import SimLLM
from tests.analysis.score_report.reports import data_of, run_of


def flagged_run(pairs, metric):
    candidates, references = (list(texts) for texts in zip(*pairs, strict=True))
    scores = metric.score(candidates, references)
    changed = {"score": scores.changed}
    return ScoredPairs(
        references, {"": candidates}, {"score": scores.values}, {"score": scores.same}, changed
    )


def test_changing_words_are_those_of_explain(default_metric):
    pairs = [
        ("opens the file", "closes the file"),
        ("adds two lists", "combines 2 arrays"),
        ("returns whether the list is not empty", "returns whether the list is empty"),
    ]
    run = flagged_run(pairs, default_metric)
    found = explain_changed_pairs({"score": default_metric}, run)
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
    found = explain_changed_pairs({"score": default_metric}, run)["score"]
    assert len(pairs[-1][0].split()) > LONGEST_EXPLAINED
    best = np.argsort(-run.main[:-1], kind="stable")[:10]
    assert sorted(found) == sorted(best.tolist())
    assert [number_of_explained(n) for n in (1, 2_000, 3_000, 10**6)] == [10, 10, 15, 25]
    page = render_report(dataclasses.replace(run, changed_by={"score": found}), "")
    assert (
        "these words are looked for in 10 pairs of texts among the 13 whose meaning may have changed" in page
    )


def test_clauses_of_several_sentences_have_notes(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pairs = [
        ("Opens the file. It is commonly used in many applications.", "Closes the file. Reads all lines."),
        ("draws a circle", "parses the date in the log"),
        ("Draws a circle. Sends it to the user.", "Parses the date. Reads the log."),
    ]
    lines = [json.dumps({"candidate": c, "reference": r}) for c, r in pairs]
    (tmp_path / "pairs.jsonl").write_text("\n".join(lines))
    assert main(["score", "--jsonl", "pairs.jsonl", "-f", "json", "--report", "report.html"]) == 0
    page = (tmp_path / "report.html").read_text()
    first, second, third = data_of(page)["pairs"]
    notes = {note: clauses for note, clauses, _ in first["clauses"]}
    assert notes["meaning may have changed"] == ["Opens the file.", "Closes the file."]
    assert notes["adds something without support"] == ["is commonly used in many applications."]
    assert "Looked for in 2 pairs of several sentences" in page
    assert "clauses" not in second
    # The scores of unrelated texts are those of single sentences.
    assert second["unrelated"]
    assert "unrelated" not in third


def test_metrics_that_cannot_be_explained_name_no_words(default_metric):
    run = flagged_run([("opens the file", "closes the file")], default_metric)
    by_token = SimLLM(similarity="f1")
    assert explain_changed_pairs({"score": by_token}, run) == {}
    assert explain_changed_pairs({"another": default_metric}, run) == {}


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


@pytest.mark.parametrize(
    ("candidate", "reference", "expected"),
    [
        ("Opens the file.", "opens the FILE", 1),
        ("adds .", "removes .", 0),
        ("l'\u00e9l\u00e8ve \u2014 lit", "\u00c9crit \u2014 tout", 0),
        ("\u00c9crit tout", "\u00e9crit rien", 1 / 3),
        ("\u0915\u0940 a", "\u0915\u093f a", 1 / 3),  # the words differ in a vowel sign
        ("a\ufeffb", "a\u3000b", 1),
        ("", "", 1),
        ("...", "a", 0),
    ],
)
def test_capitals_and_punctuation_do_not_count(candidate, reference, expected):
    assert word_overlap([candidate], [reference]) == [pytest.approx(expected)]


def test_surprising_pairs_share_words_but_score_low():
    run = ScoredPairs(
        ["opens the file", "adds two lists", "writes a log"],
        {"": ["closes the file", "combines 2 arrays", "logs"]},
        {"score": np.array([0.1, 0.9, 0.5])},
    )
    assert np.argmax(run.surprise) == 0
    assert np.argmin(run.surprise) == 1


def test_without_a_learned_metric_a_high_score_is_above_the_median():
    scores = {"rps": np.array([9.0, 1.0, 4.0])}
    page = render_report(ScoredPairs(["a"] * 3, {"": ["b"] * 3}, scores), "")
    assert data_of(page)["worstGoodScore"] == 4
    assert "There, a score is low up to 4.000, the median." in page


def test_long_texts_are_found_in_every_column(default_metric):
    long = "opens the file " * 200
    run = ScoredPairs(["a", long, "c"], {"x": ["a", "b", "c"], "y": ["a", "b", long]}, {"x": np.ones(3)})
    metrics = {"x": default_metric, "y": default_metric}
    assert find_long_texts(metrics, run.texts) == [1, 2]
    assert find_long_texts({}, run.texts) == []
    found = dataclasses.replace(run_of(3), truncated=2, long_texts=[1, 2])
    assert "In 2 pairs (67%), a text is longer than the model reads." in render_report(found, "")


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
