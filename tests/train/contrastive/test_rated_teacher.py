"""A larger encoder that learns people's ratings."""

import json

import numpy as np
import pytest
import torch

from train.contrastive import rated_teacher
from train.distill import teachers as teacher_models

pytestmark = pytest.mark.slow

SUBJECTS = ("the list", "the file", "a name", "the window", "a number", "the map", "the user", "a row")


def rows():
    """Pairs that "people" rate 5 if the verb is equal, and 0 if the subject is: a teacher has to learn it."""
    same = [{"a": f"adds {a}", "b": f"adds {b}", "score": 5.0} for a in SUBJECTS for b in SUBJECTS if a != b]
    return same + [{"a": f"adds {a}", "b": f"removes {a}", "score": 0.0} for a in SUBJECTS]


@pytest.fixture
def rated(tmp_path):
    file = tmp_path / "rated.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows()))
    return file


@pytest.mark.parametrize("kind", ["bert", "mpnet"])
def test_cosines_come_nearer_to_the_ratings(call, teachers, rated, tmp_path, kind):
    out = tmp_path / "taught"
    done = call(rated_teacher, teachers[kind], out, "--rated", rated, "--epochs", 12)
    assert done.returncode == 0, done.stderr
    assert "64 pairs" in done.stderr

    def error(folder):
        embed = teacher_models.load(folder, torch.device("cpu"))
        first, second = (embed([row[side] for row in rows()]) for side in ("a", "b"))
        return np.square((first * second).sum(axis=1) - [row["score"] / 5 for row in rows()]).mean()

    assert error(out) < 0.95 * error(teachers[kind])
    assert done.stdout == ""
    facts = json.loads((out / "training.json").read_text())
    assert (facts["pairs"], facts["epochs"]) == (64, 12)
    again = call(rated_teacher, teachers[kind], out, "--rated", rated, "--epochs", 1)
    assert again.returncode == 0  # the folder is one of simllm's: it is replaced


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (("--epochs", 0), "expected --epochs from 1"),
        (("--seed", -1), "--seed from 0"),
        (("--scale", 5, 5), "scale must be"),
        (("--rated", "none.jsonl"), "no such file"),
    ],
)
def test_wrong_options_are_one_line(call, teachers, rated, tmp_path, option, message):
    done = call(rated_teacher, teachers["bert"], tmp_path / "out", "--rated", rated, *option)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert message in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_teacher_is_not_replaced_by_its_pupil(call, teachers, rated, tmp_path):
    first = call(rated_teacher, teachers["bert"], tmp_path / "taught", "--rated", rated)
    assert first.returncode == 0
    done = call(rated_teacher, tmp_path / "taught", tmp_path / "taught", "--rated", rated)
    assert done.returncode == 2
    assert "is the source" in done.stderr


def test_texts_to_evaluate_with_are_left_out(call, teachers, rated, tmp_path):
    excluded = tmp_path / "test.jsonl"
    excluded.write_text(json.dumps({"a": "adds the list", "b": "adds a row", "score": 1}) + "\n")
    command = (teachers["bert"], tmp_path / "taught", "--rated", rated, "--exclude", excluded)
    done = call(rated_teacher, *command)
    assert done.returncode == 0, done.stderr
    assert "36 pairs" in done.stderr  # of six subjects


def test_folders_of_the_user_stay(call, teachers, rated, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("x")
    done = call(rated_teacher, teachers["bert"], tmp_path / "mine", "--rated", rated)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "x"
