"""Shared fixtures of the training tests."""

import json
import shutil
import signal
from itertools import pairwise
from typing import NamedTuple

import pytest
import torch
import yaml

from simllm.text_cleaning import clean
from tests.train import shared_lexicon, small_teachers  # noqa: F401
from tests.train.contrastive.one_update import sources
from tests.train.training_processes import Runner, pretraining


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """Use one thread: with such small models, several threads mostly wait for each other."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def short_texts(comments):
    return sorted({text for text in map(clean, comments) if 3 <= text.count(" ") < 12})


@pytest.fixture(scope="session")
def teachers(short_texts, tmp_path_factory):
    """Save two small teachers, a BERT and an MPNet; return a dict from the model type to the folder."""
    folder = tmp_path_factory.mktemp("teachers")
    return {
        kind: small_teachers.make_teacher(folder / kind, kind, short_texts) for kind in small_teachers.SPECIAL
    }


@pytest.fixture
def run(tmp_path):
    """Return a `Runner` of training commands."""
    return Runner(tmp_path / "output")


class Done(NamedTuple):
    """Result of a command, with the attributes of `subprocess.CompletedProcess`."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def call(monkeypatch, capfd):
    """Return a function that calls the `main` of a module in this process, which is fast."""

    def called(module, *arguments):
        monkeypatch.setattr("sys.argv", [module.__name__, *map(str, arguments)])
        capfd.readouterr()
        try:
            status = module.main()
        except SystemExit as ended:
            status = ended.code
        return Done(status, *capfd.readouterr())

    return called


@pytest.fixture(scope="session")
def few_comments(comments, tmp_path_factory):
    """Write a file of a few hundred comments for pretraining."""
    file = tmp_path_factory.mktemp("few") / "comments.jsonl"
    file.write_text("".join(json.dumps({"text": text}) + "\n" for text in comments[:500]))
    return file


@pytest.fixture(scope="session")
def finished_run(few_comments, tmp_path_factory):
    """Return the folder of a finished pretraining, which tests may read and copy."""
    folder = tmp_path_factory.mktemp("finished")
    run = Runner(folder / "output")
    status, errors = run("train.pretrain", *pretraining(few_comments, folder / "run"))
    assert status == 0, errors
    return folder / "run"


@pytest.fixture(scope="session")
def stopped_run(few_comments, tmp_path_factory):
    """Return the folder of a pretraining that was stopped after a third of its updates."""
    folder = tmp_path_factory.mktemp("stopped")
    command = ["train.pretrain", *pretraining(few_comments, folder / "run")]
    started = Runner(folder / "output").start(*command, pause_at="update 8 ")
    started.signal(signal.SIGTERM)
    assert started.finish() == 75, started.errors
    return folder / "run"


@pytest.fixture
def resumable_run(stopped_run, tmp_path):
    """Return a copy of a stopped pretraining, which can be resumed."""
    return shutil.copytree(stopped_run, tmp_path / "run")


@pytest.fixture
def sets(comments, tmp_path):
    """Write a configuration of `train.release.measure`; its pairs of comments are rated by word overlap."""
    rated, rows = tmp_path / "set" / "rated.jsonl", tmp_path / "held-out.jsonl"
    rated.parent.mkdir()
    with rated.open("w") as file:
        for a, b in pairwise(comments[:61]):
            row = {"reference": a, "candidate": b, "rating": len(set(a.split()) & set(b.split()))}
            file.write(json.dumps(row) + "\n")
    with rows.open("w") as file:
        for number, text in enumerate(comments[:200]):
            half = text[: len(text) // 2].strip() or text
            row = {"summary": half, "description": text, "language": ("python", "go")[number % 2]}
            file.write(json.dumps(row | {"split": ("train", "test")[number % 3 > 0]}) + "\n")
    config = {
        "rated": [str(rated)], "baselines": ["jaccard"], "comments": str(rows),
        "comments_per_language": 20, "random_pairs": 50,
    }  # fmt: skip
    file = tmp_path / "measure.yaml"
    file.write_text(yaml.safe_dump(config))
    return file


@pytest.fixture(scope="session")
def update_folder(comments, model_folder, tmp_path_factory):
    """Write small training data of every kind for the contrastive stage, and a start model."""
    folder = tmp_path_factory.mktemp("update")
    sources(folder, comments, model_folder)
    return folder
