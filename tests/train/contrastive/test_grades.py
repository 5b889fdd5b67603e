"""The graded output of a meaning head: its pairs, and how it is fitted."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from simllm import InputError, SimLLM
from simllm.model import saved_model
from train.contrastive.grades import (
    GradedSourceConfig,
    GradesConfig,
    compute_features,
    fit_grades,
    read_graded_pairs,
    with_graded_output,
)
from train.contrastive.meaning_pairs import MeaningPair


@pytest.fixture
def pairs(comments):
    """Pairs of comments whose grade is the share of common words."""
    texts = [" ".join(text.split()[:30]) for text in comments[:200]]
    found = []
    for first, second in zip(texts, texts[1:] + texts[:1], strict=True):
        words = first.split()
        for other in (second, " ".join(words[: len(words) // 2]), " ".join(words[::2] + second.split())):
            a, b = set(first.split()), set(other.split())
            if other:
                found.append(MeaningPair(first, other, len(a & b) / len(a | b)))
    return found


def test_grades_are_scaled_and_clipped(tmp_path):
    rows = [("a b", "c d", 0.5, "x"), ("e f", "g h", 2, "x"), ("i j", "k l", 9, "x"), ("m", "n", 3, "y")]
    rows += [("of  A test", "o p", 3, "x")]
    file = tmp_path / "rated.jsonl"
    keys = ("one", "two", "grade", "set")
    file.write_text("".join(json.dumps(dict(zip(keys, row, strict=True))) + "\n" for row in rows))
    (tmp_path / "test.jsonl").write_text('{"reference": "of a test", "candidate": "?", "rating": 1}\n')
    everything = "".join(
        json.dumps({"reference": a, "candidate": b, "rating": 1}) + "\n" for a, b, *_ in rows
    )
    (tmp_path / "all.jsonl").write_text(everything)
    source = GradedSourceConfig(source=str(file), fields=keys[:3], scale=(1, 4), leave_out={"set": ("y",)})
    config = GradesConfig(sources=(source,), exclude=(str(tmp_path / "test.jsonl"),))
    assert [(pair.first, pair.label) for pair in read_graded_pairs(config)] == [
        ("a b", 0.0),
        ("e f", pytest.approx(1 / 3)),
        ("i j", 1.0),
    ]
    with pytest.raises(InputError, match=r"graded '.*rated\.jsonl': no pair is left"):
        read_graded_pairs(replace(config, exclude=(str(tmp_path / "all.jsonl"),)))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"fields": ("a", "b")}, "three fields, not 2"),
        ({"scale": (5, 0)}, "lowest and the highest grade"),
        ({"scale": (0, 1, 2)}, "lowest and the highest grade"),
    ],
)
def test_wrong_sources_are_refused(wrong, message):
    with pytest.raises(InputError, match=message):
        GradedSourceConfig(source="x", **wrong)


def test_features_are_those_of_the_head(graded_folder, pairs):
    model, some = saved_model.load(graded_folder), pairs[:40]
    features, cosines = compute_features(model, some)
    scores = SimLLM(graded_folder, long="whole").score([p.second for p in some], [p.first for p in some])
    with torch.no_grad():
        grades = torch.sigmoid(model.head.grade(features, cosines)).squeeze(1).numpy()
        logits = model.head.same(features).squeeze(1).numpy()
    different = np.array([pair.first != pair.second for pair in some])
    np.testing.assert_allclose(grades[different], scores.graded[different], atol=1e-4)
    np.testing.assert_allclose(1 / (1 + np.exp(-logits))[different], scores.same[different], atol=1e-4)
    np.testing.assert_allclose(cosines.numpy(), scores.values, atol=1e-4)


def test_a_new_output_rises_with_the_cosine_alone(head_folder):
    model = saved_model.load(head_folder)
    head = with_graded_output(model)
    features, cosines = torch.randn(5, 2 * head.config.width), torch.linspace(-1, 1, 5)
    expected = torch.sigmoid(6 * cosines - 3)
    torch.testing.assert_close(torch.sigmoid(head.grade(features, cosines)).squeeze(1), expected)


def test_fitted_grades_agree_with_other_pairs_and_nothing_else_changes(head_folder, pairs, tmp_path):
    model = saved_model.load(head_folder)
    before = {name: weight.clone() for name, weight in model.head.state_dict().items()}
    head = fit_grades(model, pairs[::2])
    for name, weight in before.items():
        assert torch.equal(weight, head.state_dict()[name]), name
    others = pairs[1::2]
    features, cosines = compute_features(model, others)
    truth = np.array([pair.label for pair in others])
    with torch.no_grad():
        fitted = torch.sigmoid(head.grade(features, cosines)).squeeze(1).numpy()
        new = torch.sigmoid(with_graded_output(model).grade(features, cosines)).squeeze(1).numpy()
    assert np.square(fitted - truth).mean() < 0.8 * np.square(new - truth).mean()
    again = fit_grades(saved_model.load(head_folder), pairs[::2])
    torch.testing.assert_close(again.graded.weight, head.graded.weight)


def test_a_model_without_a_head_is_refused(model_folder, pairs):
    with pytest.raises(InputError, match="a graded output needs a model with a meaning head"):
        fit_grades(saved_model.load(model_folder), pairs)


def test_few_pairs_are_refused_and_equal_pairs_give_finite_weights(head_folder, pairs):
    model = saved_model.load(head_folder)
    with pytest.raises(InputError, match="19 graded pairs are too few; 20 or more are needed"):
        fit_grades(model, pairs[:19])
    weights = fit_grades(model, pairs[:1] * 20).graded.weight
    assert weights.half().isfinite().all()
