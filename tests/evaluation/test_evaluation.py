import itertools
import json

import numpy as np
import pytest
from scipy import stats

from simllm import InputError
from simllm.evaluation import ratings, study
from simllm.evaluation.baselines import BASELINES, baseline
from simllm.evaluation.correlation import spearman


@pytest.fixture(scope="module")
def haque(shared):
    file = shared / "data" / "rated" / "haque2022.jsonl"
    return file, ratings.load(file), [json.loads(line) for line in file.read_text().splitlines()]


def column(rows, name):
    return np.array([row["metrics"][name] for row in rows], float)


def test_sentence_bleu_equals_the_authors_column(haque):
    """Theirs is of the candidates as generated, `<UNK>` included; a study leaves those words out."""
    _, rated, rows = haque
    generated = [row["candidate"] for row in rows]
    assert sum(a != b for a, b in zip(generated, rated.candidates, strict=True)) > 3
    values = baseline("bleu")(generated, rated.references)
    assert values == pytest.approx(column(rows, "bleu"), abs=1e-9)


def test_jaccard_equals_the_authors_column(haque):
    _, rated, rows = haque
    values = baseline("jaccard")(rated.candidates, rated.references)
    assert values == pytest.approx(column(rows, "jaccard_similarity_score"), abs=1e-9)


def test_rouge_l_ranks_as_the_authors_column(haque):
    _, rated, rows = haque
    names = [name for name in rows[0]["metrics"] if "rouge" in name.lower() and "l" in name.lower()[5:]]
    values = baseline("rouge-l")(rated.candidates, rated.references)
    assert max(stats.spearmanr(values, column(rows, name)).statistic for name in names) > 0.999


def test_correlations_on_haque(haque):
    file, _, _ = haque
    rows = {row.metric: row for row in study.study(file).rows}
    assert rows["jaccard"].spearman == pytest.approx(0.7927, abs=5e-5)
    assert rows["bleu"].spearman == pytest.approx(0.7331, abs=5e-4)
    assert rows["rouge-l"].spearman == pytest.approx(0.8152, abs=2e-3)
    for row in rows.values():
        assert row.n == 210
        assert row.low < row.spearman < row.high
        assert row.p_value < 0.001


def test_spearman_by_hand():
    result = spearman(np.array([1.0, 2.0, 3.0, 4.0, 5.0]), np.array([2.0, 1.0, 4.0, 3.0, 5.0]))
    assert result.rho == pytest.approx(1 - 6 * 4 / (5 * 24))
    assert result.low <= result.rho <= result.high


def test_the_interval_covers_the_truth_as_often_as_it_says():
    random = np.random.default_rng(0)
    covered = 0
    for _ in range(60):
        x = random.normal(size=80)
        result = spearman(x, 0.7 * x + random.normal(size=80))
        covered += result.low < 0.552 < result.high  # rho of this bivariate normal: 6/pi asin(r/2)
    assert 50 <= covered <= 60


def test_a_constant_metric_has_no_correlation():
    assert np.isnan(spearman(np.ones(5), np.arange(5.0)).rho)


@pytest.mark.parametrize("name", BASELINES)
def test_baselines_of_equal_and_of_empty_texts(name):
    same = "returns the first value of the list"
    values = baseline(name)([same, "", "other words here"], [same, same, same])
    assert values == pytest.approx([1.0, 0.0, 0.0], abs=1e-9)


GOOD = {"reference": "a b", "candidate": "a c", "rating": 2}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([GOOD, GOOD, GOOD], "all ratings are 2; there is nothing to correlate with"),
        ([GOOD, GOOD], "2 rated pairs; a correlation needs at least 3"),
        ([GOOD, {**GOOD, "rating": "high"}], 'line 2: expected a number under "rating"'),
        ([GOOD, {**GOOD, "rating": float("nan")}], 'line 2: expected a number under "rating"'),
        ([{**GOOD, "reference": None}], 'line 1: expected a text under "reference"'),
        ([{"reference": "a", "rating": 1}], 'line 1: expected a text under "candidate"'),
        ([[]], "line 1: expected a JSON object"),
    ],
)
def test_bad_ratings_name_the_line(tmp_path, rows, message):
    file = tmp_path / "ratings.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(InputError, match=message):
        ratings.load(file)


def test_an_unknown_metric_is_named(tmp_path, model_folder):
    file = tmp_path / "ratings.jsonl"
    file.write_text((json.dumps(GOOD) + "\n") * 3)
    with pytest.raises(InputError, match="metric 'blue': expected one of simllm, bleu, jaccard, rouge-l"):
        study.study(file, ["blue"])


def test_a_study_of_a_model(tmp_path, model_folder, comments):
    rows = [{"reference": a, "candidate": b, "rating": len(a)} for a, b in itertools.pairwise(comments[:9])]
    file = tmp_path / "ratings.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = study.study(file, ["simllm"], model_folder)
    (row,) = result.rows
    assert result.signature.startswith("model:")
    assert (row.metric, row.n) == ("simllm", 8)
    assert -1 <= row.spearman <= 1
