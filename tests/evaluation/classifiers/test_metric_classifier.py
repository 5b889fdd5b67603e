"""Metrics as classifiers: the threshold and probabilities of a fold are learned on the other folds only."""

import json

import numpy as np
import pytest

from simllm.errors import InputError
from simllm.evaluation import ratings
from simllm.evaluation.classifiers.metric_classifier import classify
from simllm.metrics import registry
from simllm.metrics.interface import PlainScores
from tests.command import run


@pytest.fixture
def rated(tmp_path):
    """Write forty rated pairs; the texts of pairs with a high rating share more words."""
    words = "reads writes closes opens copies moves sorts merges".split()
    rows = []
    for number in range(40):
        reference = f"{words[number % 8]} the file number {number} from disk"
        candidate = reference if number % 4 else f"{words[(number + 3) % 8]} a socket"
        rows.append({"reference": reference, "candidate": candidate, "rating": 4 if number % 4 else 1})
    file = tmp_path / "rated.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def test_separable_ratings_are_learned(rated):
    (metric,), _ = registry.load_all(["jaccard"])
    rows = classify(ratings.load(rated), 3, [metric], folds=5).rows
    assert (rows["gold"] == rows["predicted"]).all()
    assert rows.groupby("fold").size().tolist() == [8] * 5
    assert rows.loc[rows["gold"] == "acceptable", "probability"].min() > 0.5


def test_nothing_is_learned_from_the_own_fold(rated):
    """Higher scores in one fold change the map from scores to probabilities for all other folds.

    For this fold itself, the map stays the same.
    """
    (metric,), _ = registry.load_all(["jaccard"])
    noise = np.random.default_rng(3).normal(0, 0.05, 40)

    class Noisy:
        name = "noisy"
        signature = "noisy"

        def score(self, examples):
            found = metric.score(examples)
            return type(found)(found.values + noise, found.signature)

    loaded = ratings.load(rated)
    before = classify(loaded, 3, [Noisy()], folds=5).rows
    own = (before["fold"] == "1").to_numpy()
    noise[own] += 5  # only the scores of the first fold
    after = classify(loaded, 3, [Noisy()], folds=5).rows
    threshold_free = before.loc[own, "probability"] <= after.loc[own, "probability"]
    assert threshold_free.all()  # the same map, at higher scores
    assert not np.allclose(before.loc[~own, "probability"], after.loc[~own, "probability"])


@pytest.mark.slow
def test_command_keeps_predictions_and_variants(rated, tmp_path):
    words = ["--ratings", rated, "--acceptable", "3", "--metrics", "jaccard,rouge-l", "--folds", "4"]
    done = run("evaluate", "classifiers", *words, "--perturb", "--out", tmp_path / "report", "-f", "tsv")
    assert done.returncode == 0, done.stderr
    kept = [json.loads(line) for line in (tmp_path / "report" / "predictions.jsonl").open()]
    assert {row["classifier"] for row in kept} == {"jaccard", "rouge-l"}
    assert {row.get("variant", "") for row in kept} > {"", "typo"}
    found = json.loads((tmp_path / "report" / "classifiers.json").read_text())
    assert found["classifiers"]["jaccard"]["robustness"]["variants"]["typo"]["n"] > 0
    # The kept predictions give the same study.
    again = tmp_path / "again"
    file = tmp_path / "report" / "predictions.jsonl"
    assert run("evaluate", "classifiers", file, "--positive", "acceptable", "--out", again).returncode == 0
    other = json.loads((again / "classifiers.json").read_text())
    assert other["tests"] == found["tests"]
    # The report that holds them is not replaced.
    before = file.read_bytes()
    about = tmp_path / "report" / "about.toml"
    about.write_text('model = "x"\n')
    for files, inner in (([file], file), ([again / "none.csv", "--about", about], about)):
        words = (*files, "--positive", "acceptable", "--out", tmp_path / "report")
        done = run("evaluate", "classifiers", *words)
        assert done.returncode == 2
        assert f"report: is the source {inner}, inside it or above it; name another folder\n" in done.stderr
    assert file.read_bytes() == before


def test_too_few_pairs_of_a_class(rated):
    with pytest.raises(InputError, match="0 of 40 pairs have a mean rating of 5 or more"):
        classify(ratings.load(rated), 5, [], folds=5)


def test_pairs_without_a_score_leave_too_few(rated):
    """A metric that scores one class only gives no threshold."""

    class Silent:
        name = "silent"
        signature = "silent"

        def score(self, examples):
            values = np.array([1.0 if "socket" in each.candidate else np.nan for each in examples])
            return PlainScores(values, "silent")

    message = "silent: fold 1 has no threshold, because only 8 of the other 32 pairs have a score"
    with pytest.raises(InputError, match=message):
        classify(ratings.load(rated), 3, [Silent()], folds=5)
