"""Adapting a model to a user's comments: the whole command, with a small model."""

import json

import numpy as np
import pytest

from simllm import SimLLM
from simllm.analysis import golden_scores
from simllm.model import saved_model
from tests.train.training_processes import content
from train import adapt

pytestmark = pytest.mark.slow


@pytest.fixture
def mine(comments, tmp_path):
    """Write a plain file with a comment on each line."""
    file = tmp_path / "mine.txt"
    file.write_text("".join(f"{' '.join(text.split())}\n" for text in comments[:400]))
    return file


@pytest.fixture
def command(head_folder, tmp_path):
    """Return the options of a short adaptation with a few meaning items."""
    items = tmp_path / "items.jsonl"
    rows = [
        {
            "text": f"opens {i} files",
            "same": [f"open {i} files"],
            "different": [["related", f"adds {i} keys"]],
        }
        for i in range(200)
    ]
    items.write_text("".join(json.dumps(row) + "\n" for row in rows))
    few = ["positives.1.source", "meaning.sources.1.source", "dev_items"]
    settings = ["updates=4", "evaluate_every=2", "warmup_updates=1", "learning_rate=0.001", "precision=fp32"]
    return ["--model", head_folder, "--set", *settings, *(f"{key}={items}" for key in few)]


@pytest.mark.filterwarnings("ignore:.*texts cut at")
def test_adapted_model_has_head_calibration_golden_scores_and_figures(call, mine, command, tmp_path):
    out = tmp_path / "adapted"
    done = call(adapt, mine, "--out", out, *command)
    assert done.returncode == 0, done.stderr
    metric = SimLLM(out / "model")
    scores = metric.score(["adds two lists", "adds two lists"], ["adds two lists", "opens the file"])
    assert scores.same is not None
    assert metric.calibration.fitted_on == "10,000 random pairs of test.txt"
    assert "test.txt" in metric.model.info.meaning.fitted_on
    assert golden_scores.largest_difference(metric, out / "model") < 1e-5

    start = saved_model.load(command[1])
    assert metric.model.hash != start.hash
    assert metric.model.head_hash != start.head_hash
    report = json.loads((out / "model" / "adaptation.json").read_text())
    assert report["start"] == start.hash
    assert report["before"].keys() == report["after"].keys() > {"retrieval", "same_edits", "same_items"}
    assert any("comments are few" in warning for warning in report["warnings"])
    assert "warning: " in done.stderr
    table = dict(line.rsplit(maxsplit=2)[::2] for line in done.stdout.splitlines() if "rewordings" in line)
    name = "shortened rewordings that find their comment"
    assert table == {name: f"{report['after']['retrieval']:.3f}"}
    assert f"| {name} |" in (out / "model" / "README.md").read_text()

    parts = [out / "corpus/train.txt", out / "held-out/dev.txt", out / "held-out/test.txt"]
    texts = [set(part.read_text().splitlines()) for part in parts]
    assert all(texts)
    assert len(set.union(*texts)) == sum(map(len, texts))

    before = content(out / "model")
    again = call(adapt, mine, "--out", out, *command)
    assert (again.returncode, again.stdout) == (0, done.stdout)
    assert "resuming after update 4" in again.stderr
    assert content(out / "model") == before


def test_a_model_without_a_head_is_adapted_without_one(call, mine, command, model_folder, tmp_path):
    command[1] = model_folder
    kept = [value for value in command if not str(value).startswith("meaning.")]
    done = call(adapt, mine, "--out", tmp_path / "adapted", *kept)
    assert done.returncode == 0, done.stderr
    assert SimLLM(tmp_path / "adapted" / "model").score(["a b"], ["a c"]).same is None


@pytest.mark.filterwarnings("ignore:.*texts cut at")
def test_an_adapted_head_keeps_its_graded_output(call, mine, command, graded_folder, tmp_path):
    command[1] = graded_folder
    done = call(adapt, mine, "--out", tmp_path / "adapted", *command)
    assert done.returncode == 0, done.stderr
    texts = mine.read_text().splitlines()[:100]
    before = SimLLM(graded_folder).score(texts, texts[::-1]).graded
    after = SimLLM(tmp_path / "adapted" / "model").score(texts, texts[::-1]).graded
    assert before.std() > 0.05  # so that the next line tells something
    assert np.corrcoef(before, after)[0, 1] > 0.9


def test_bad_input_gives_one_line(call, mine, command, tmp_path):
    few = tmp_path / "few.txt"
    few.write_text("".join(f"adds {number} lists to the other\n" for number in range(20)))
    done = call(adapt, few, "--out", tmp_path / "few", *command)
    assert done.returncode == 2
    last = done.stderr.splitlines()[-1]
    assert last.startswith("error: 20 different comments are too few to adapt to; 100 or more are needed")
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "thesis.txt").write_text("mine")
    done = call(adapt, mine, "--out", tmp_path / "used", *command)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "holds files that simllm did not write" in done.stderr
    done = call(adapt, mine, "--out", tmp_path / "new", "--set", "updats=3")
    assert (done.returncode, "unknown key updats" in done.stderr) == (2, True)
    done = call(adapt, tmp_path / "comments.CSV", "--out", tmp_path / "new")
    assert done.returncode == 2
    assert "expected comments, one on each line, or JSON lines; not a table" in done.stderr
    assert not (tmp_path / "new").exists()
