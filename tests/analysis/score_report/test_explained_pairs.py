"""The explained pairs of a report: their changing words, and which pairs are explained."""

import dataclasses

import numpy as np

from simllm.analysis.explanation import explain
from simllm.analysis.score_report import ScoredPairs, render_report
from simllm.analysis.score_report.pairs import LONGEST_EXPLAINED, explain_changed_pairs, number_of_explained
from simllm.metric import SimLLM
from tests.analysis.score_report.report_page_data import data_of


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


def test_metrics_that_cannot_be_explained_name_no_words(default_metric):
    run = flagged_run([("opens the file", "closes the file")], default_metric)
    by_token = SimLLM(similarity="f1")
    assert explain_changed_pairs({"score": by_token}, run) == {}
    assert explain_changed_pairs({"another": default_metric}, run) == {}
