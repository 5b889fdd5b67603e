"""Token-level similarity, against values computed by hand and by a second method."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from simllm import InputError, SimLLM
from simllm.scoring import token_matching

# Two candidate tokens against three reference tokens, in the plane: 0 and 90 degrees against
# 0, 60 and 180 degrees, of any length.
CANDIDATE = np.array([[2.0, 0.0], [0.0, 3.0]])
REFERENCE = np.array([[1.0, 0.0], [0.5, math.sqrt(3) / 2], [-4.0, 0.0]])


def test_states_are_normalised_before_they_are_multiplied():
    half, root = 0.5, math.sqrt(3) / 2
    assert token_matching.cosines(CANDIDATE, REFERENCE) == pytest.approx(
        np.array([[1, half, -1], [0, root, 0]])
    )
    assert token_matching.cosines(np.zeros((1, 2)), REFERENCE) == pytest.approx(np.zeros((1, 3)))


def test_precision_recall_and_f1_by_hand():
    best, back = token_matching.best_cosines(CANDIDATE, REFERENCE)
    assert best == pytest.approx([1.0, math.sqrt(3) / 2])
    assert back == pytest.approx([1.0, math.sqrt(3) / 2, 0.0])
    sides = (
        token_matching.MatchedTokens(best, np.array([1.0, 3.0])),
        token_matching.MatchedTokens(back, np.array([2.0, 1.0, 1.0])),
    )
    precision = (1 * 1 + 3 * math.sqrt(3) / 2) / 4
    recall = (2 * 1 + 1 * math.sqrt(3) / 2 + 1 * 0) / 4
    assert token_matching.precision(*sides) == pytest.approx(precision)
    assert token_matching.recall(*sides) == pytest.approx(recall)
    assert token_matching.f1(*sides) == pytest.approx(2 * precision * recall / (precision + recall))
    opposite = token_matching.MatchedTokens(np.array([-1.0]), np.array([3.0]))
    assert token_matching.precision(opposite, opposite) == -1
    assert token_matching.f1(opposite, opposite) == 0


def test_blocks_do_not_change_the_matches(monkeypatch):
    draw = np.random.default_rng(0)
    a, b = draw.normal(size=(70, 8)), draw.normal(size=(45, 8))
    whole = token_matching.best_cosines(a, b)
    monkeypatch.setattr(token_matching, "_BLOCK", 16)
    for x, y in zip(token_matching.best_cosines(a, b), whole, strict=True):
        assert np.array_equal(x, y)


@settings(max_examples=300)
@given(
    arrays(np.float64, st.integers(1, 9), elements=st.floats(0, 1)),
    arrays(np.float64, 9, elements=st.floats(1, 20)),
)
def test_scores_never_exceed_one_by_rounding(below, weights):
    side = token_matching.MatchedTokens(1 - below * 1e-15, weights[: len(below)])
    other = token_matching.MatchedTokens(np.ones(9), weights)
    assert other.mean == 1
    for measure in token_matching.TOKEN_SIMILARITIES.values():
        assert measure(side, other) <= 1
        assert measure(other, side) <= 1
        assert measure(other, other) == 1


def test_token_scores_equal_a_loop_over_tokens(model_folder, comments):
    candidates, references = comments[:40], comments[20:60]
    scores = {
        name: SimLLM(model_folder, similarity=name).score(candidates, references)
        for name in ("precision", "recall", "f1")
    }
    p, r, f = (scores[name].values for name in ("precision", "recall", "f1"))
    assert f == pytest.approx(2 * p * r / (p + r))
    metric = SimLLM(model_folder, similarity="f1")
    frequencies = metric.count_frequencies(references)
    same = SimLLM(model_folder, similarity="precision", frequencies=frequencies)
    other = SimLLM(model_folder, similarity="recall", frequencies=frequencies)
    assert same.score(candidates, references).values == pytest.approx(p)
    assert same.score(candidates, references).values == pytest.approx(
        other.score(references, candidates).values
    )
    assert metric.score(["adds two", ""], ["adds two", "adds"]).values == pytest.approx([1.0, 0.0])
    assert "|frequencies:references|" in metric.signature
    assert f"|frequencies:{frequencies.hash}|" in same.signature
    assert scores["precision"].signature == same.signature  # the frequencies of the references


def test_score_of_one_pair_from_its_states(model_folder):
    metric = SimLLM(model_folder, similarity="f1")
    a, b = metric.tokenize(["adds two numbers"]), metric.tokenize(["gets the sum of it"])
    weights = metric.count_frequencies(["gets the sum of it"]).weights(metric.model.tokenizer)
    (x,), (y,) = token_matching.token_states(metric.engine, a), token_matching.token_states(metric.engine, b)
    best = [max(float(u @ v / np.linalg.norm(u) / np.linalg.norm(v)) for v in y) for u in x]
    back = [max(float(u @ v / np.linalg.norm(u) / np.linalg.norm(v)) for u in x) for v in y]
    p = np.average(best, weights=weights[list(a.inputs[0][0][1:-1])])
    r = np.average(back, weights=weights[list(b.inputs[0][0][1:-1])])
    value = metric.score(["adds two numbers"], ["gets the sum of it"]).values[0]
    assert value == pytest.approx(2 * p * r / (p + r), abs=1e-5)


def test_stream_needs_saved_frequencies(model_folder):
    with pytest.raises(InputError, match="a stream needs a table of frequencies"):
        SimLLM(model_folder, similarity="f1").stream([("a", "b")])
