"""What tests of training share."""

import json
import shutil
import signal
from itertools import pairwise
from typing import NamedTuple

import pytest
import torch
import yaml

from tests.train import warm  # noqa: F401
from tests.train.contrastive.one_update import sources
from tests.train.runs import Runner, pretraining


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """Several threads would wait for each other most of the time, in models as small as these."""
    torch.set_num_threads(1)


@pytest.fixture
def run(tmp_path):
    """Run a training command (see `Runner`)."""
    return Runner(tmp_path / "output")


class Done(NamedTuple):
    """What a command left, under the names of `subprocess.CompletedProcess`."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def call(monkeypatch, capfd):
    """Call a module's `main` with arguments in this process, which no other process is as fast as."""

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
    """A file of a few hundred comments to pretrain on."""
    file = tmp_path_factory.mktemp("few") / "comments.jsonl"
    file.write_text("".join(json.dumps({"text": text}) + "\n" for text in comments[:500]))
    return file


@pytest.fixture(scope="session")
def finished(few_comments, tmp_path_factory):
    """The folder of a finished pretraining, which tests may read and copy."""
    folder = tmp_path_factory.mktemp("finished")
    run = Runner(folder / "output")
    status, errors = run("train.pretrain", *pretraining(few_comments, folder / "run"))
    assert status == 0, errors
    return folder / "run"


@pytest.fixture(scope="session")
def stopped(few_comments, tmp_path_factory):
    """The folder of a pretraining that a signal stopped after a third of its updates; and its end."""
    folder = tmp_path_factory.mktemp("stopped")
    started = Runner(folder / "output").start("train.pretrain", *pretraining(few_comments, folder / "run"))
    started.until("update 8 ")
    started.signal(signal.SIGTERM)
    assert started.finish() == 75, started.errors
    return folder / "run"


@pytest.fixture
def begun(stopped, tmp_path):
    """A copy of a pretraining that can be resumed."""
    return shutil.copytree(stopped, tmp_path / "run")


@pytest.fixture
def sets(comments, tmp_path):
    """A configuration of figures over real comments, rated by how many words they share."""
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
    """Every kind of source of the contrastive stage, in few texts, and a model to start from."""
    folder = tmp_path_factory.mktemp("update")
    sources(folder, comments, model_folder)
    return folder
