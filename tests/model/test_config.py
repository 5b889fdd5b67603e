"""Configuration of a model, and its score scale: percentiles and expected ratings."""

import json
import shutil
import sys
from unittest import mock

import numpy as np
import pytest

from simllm import InputError, SimLLM
from simllm.analysis.frameworks import assert_same_meaning
from simllm.model.config import ModelConfig, ScoreScale
from tests.command import run
from train.release import calibrate


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


def test_percentiles_by_hand():
    calibration = ScoreScale((-1.0, 0.0, 0.5), "nothing")
    scores = np.array([-1.0, -0.5, 0.25, 0.9])
    assert calibration.percentile(scores) == pytest.approx([0, 25, 75, 100])


@pytest.fixture(scope="module")
def calibrated(model_folder, comments, tmp_path_factory):
    folder = tmp_path_factory.mktemp("calibrated")
    shutil.copytree(model_folder, folder / "model")
    (folder / "comments.txt").write_text("".join(" ".join(c.split()) + "\n" for c in comments[:300]))
    command = ["train.release.calibrate", str(folder / "model"), "--comments", str(folder / "comments.txt")]
    with mock.patch.object(sys, "argv", command):
        assert calibrate.main() == 0
    return folder / "model"


def test_calibrated_model_gives_percentiles(calibrated, model_folder, comments):
    scores = SimLLM(calibrated).score(comments[:50], comments[50:100])
    assert scores.values == pytest.approx(SimLLM(model_folder).score(comments[:50], comments[50:100]).values)
    assert 20 < np.median(scores.percentiles) < 80  # these are random pairs
    assert 0 < scores.divided < 10  # some comments have several sentences
    several = "Adds two. Opens the file."
    done = run("score", several, "gets the name", "--model", calibrated, "--scale", "percentile")
    assert "1 of 1 pairs have several sentences; their percentiles mean nothing" in done.stderr
    pair = {"candidate": several, "reference": "it", "scale": "percentile", "metric": SimLLM(calibrated)}
    with pytest.warns(UserWarning, match="their percentiles mean nothing"):
        assert_same_meaning(**pair, limit=0)
    with pytest.raises(AssertionError, match="warning: 1 of 1 pairs have several sentences"):
        assert_same_meaning(**pair, limit=100)
    done = run("score", "adds two", "gets the name", "--model", calibrated, "--scale", "percentile")
    header, row = (line.split("\t") for line in done.stdout.splitlines())
    assert header == ["score", "candidate", "reference"]
    expected = SimLLM(calibrated).score(["adds two"], ["gets the name"]).percentiles[0]
    assert float(row[0]) == pytest.approx(expected, abs=1e-4)


def test_the_map_to_ratings_of_version_0_2_is_ignored(calibrated, tmp_path):
    """A folder that 0.2 calibrated loads, and calibrates with the same percentiles."""
    folder = shutil.copytree(calibrated, tmp_path / "model")
    info = json.loads((folder / "simllm.json").read_text())
    info["calibration"] |= {"scores": [0, 1], "ratings": [1, 5], "low": [1, 4], "high": [2, 5]}
    (folder / "simllm.json").write_text(json.dumps(info))
    assert SimLLM(folder).calibration == SimLLM(calibrated).calibration


def test_uncalibrated_model_gives_a_clear_error(calibrated, model_folder):
    assert SimLLM(calibrated, pooling="cls").calibration is None
    done = run("score", "a", "b", "--model", model_folder, "--scale", "percentile")
    assert done.returncode == 2
    assert "no calibration" in done.stderr
    with pytest.raises(InputError, match="random must be two or more values that do not decrease"):
        ScoreScale((1.0, 0.0), "nothing")
