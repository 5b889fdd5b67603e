"""Configuration of a model, and its score scale: percentiles and expected ratings."""

import json
import shutil
import sys
from unittest import mock

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

from simllm import InputError, SimLLM
from simllm.model.config import ModelConfig, ScoreScale
from tests.command import run
from train.release import calibrate
from train.release.calibrate import fit


def test_model_config_is_saved_and_loaded_unchanged(small_config, tmp_path):
    small_config.save(tmp_path / "config.json")
    assert ModelConfig.load(tmp_path / "config.json") == small_config


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "bert"}, "model_type is not 'mpnet'"),
        ({"hidden": 1}, "unknown key hidden"),
        ({"hidden_size": 30}, "hidden_size 30 is not a multiple of num_attention_heads 4"),
        ({"hidden_act": "relu"}, "only 'gelu'"),
        ({"vocab_size": 1.5}, "vocab_size must be of type int"),
    ],
)
def test_invalid_model_config_is_an_error(small_config, tmp_path, change, message):
    file = tmp_path / "config.json"
    small_config.save(file)
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(InputError, match=message):
        ModelConfig.load(file)


def test_percentiles_and_ratings_by_hand():
    calibration = ScoreScale((-1.0, 0.0, 0.5), (0.0, 1.0), (1.0, 5.0), (1.0, 4.0), (2.0, 5.0), "nothing")
    scores = np.array([-1.0, -0.5, 0.25, 0.9])
    assert calibration.percentile(scores) == pytest.approx([0, 25, 75, 100])
    assert calibration.rating(scores) == pytest.approx([1, 1, 2, 4.6])
    low, high = calibration.interval(np.array([0.5]))
    assert (low[0], high[0]) == (2.5, 3.5)


def test_isotonic_fit_equals_scikit_learn():
    draw = np.random.default_rng(0)
    scores = draw.uniform(-1, 1, 630)
    rated = np.clip(np.round(3 + 2 * scores + draw.normal(0, 1, 630)), 1, 5)
    made = fit(draw.normal(0, 0.1, 5000), scores, rated, "drawn")
    groups = np.sort(scores).reshape(21, 30).mean(1)
    means = rated[np.argsort(scores)].reshape(21, 30).mean(1)
    assert made.ratings == pytest.approx(IsotonicRegression().fit_transform(groups, means), abs=1e-4)
    low, high = made.interval(scores)
    assert np.mean((rated >= np.floor(low)) & (rated <= np.ceil(high))) > 0.9
    assert made.percentile(np.array([0.0]))[0] == pytest.approx(50, abs=3)
    with pytest.raises(InputError, match="15 rated pairs are too few"):
        fit(scores, scores[:15], rated[:15], "")


@pytest.fixture(scope="module")
def calibrated(model_folder, comments, tmp_path_factory):
    folder = tmp_path_factory.mktemp("calibrated")
    shutil.copytree(model_folder, folder / "model")
    (folder / "comments.txt").write_text("".join(" ".join(c.split()) + "\n" for c in comments[:300]))
    rows = [
        {"candidate": c, "reference": comments[i % 7], "rating": 1 + i % 5}
        for i, c in enumerate(comments[:100])
    ]
    (folder / "rated.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = ("--comments", folder / "comments.txt", "--ratings", folder / "rated.jsonl")
    command = ["train.release.calibrate", *map(str, (folder / "model", *options))]
    with mock.patch.object(sys, "argv", command):
        assert calibrate.main() == 0
    return folder / "model"


def test_calibrated_model_gives_percentiles_and_ratings(calibrated, model_folder, comments):
    scores = SimLLM(calibrated).score(comments[:50], comments[50:100])
    assert scores.values == pytest.approx(SimLLM(model_folder).score(comments[:50], comments[50:100]).values)
    assert 20 < np.median(scores.percentiles) < 80  # these are random pairs
    low, high = scores.rating_intervals
    assert ((low <= scores.ratings) & (scores.ratings <= high)).all()
    options = ("adds two", "gets the name", "--model", calibrated)
    header, row = run("score", *options, "--scale", "rating").stdout.splitlines()
    assert header.split("\t")[:3] == ["score", "low", "high"]
    assert 1 <= float(row.split("\t")[0]) <= 5
    percentile = run("score", *options, "--scale", "percentile").stdout.splitlines()[1].split("\t")[0]
    assert 0 <= float(percentile) <= 100


def test_uncalibrated_model_gives_a_clear_error(calibrated, model_folder):
    assert SimLLM(calibrated, pooling="cls").calibration is None
    done = run("score", "a", "b", "--model", model_folder, "--scale", "rating")
    assert done.returncode == 2
    assert "no calibration" in done.stderr
    with pytest.raises(InputError, match="low must be two or more values that do not decrease"):
        ScoreScale((0.0, 1.0), (0.0, 1.0), (1.0, 5.0), (4.0, 1.0), (2.0, 5.0), "nothing")
