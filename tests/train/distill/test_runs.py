"""The distillation command: it learns, resumes, and reports bad input in one line."""

import json
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

from simllm import InputError, SimLLM
from simllm.io import output_file
from simllm.model import saved_model
from tests.conftest import ROOT
from tests.train.training_processes import Runner, assert_same_weights, content, log
from train.distill import teachers as teacher_models
from train.distill.__main__ import prepare
from train.distill.config import DistillConfig
from train.distill.texts import GROUPS
from train.runtime.config import load
from train.runtime.distributed import World


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """Return the run folder that all configurations made by the fixture `config` share."""
    return tmp_path_factory.mktemp("prepared")


@pytest.fixture
def config(arguments, prepared):
    """Return a function that loads the configuration of a small distillation."""

    def made(*more):
        _, *overrides = arguments(prepared, *more)
        return load(DistillConfig, ROOT / "configs" / "distill.yaml", overrides)

    return made


def test_the_shipped_config_loads():
    values = yaml.safe_load((ROOT / "configs" / "distill.yaml").read_text())
    config = load(DistillConfig, ROOT / "configs" / "distill.yaml", [])
    assert len(config.texts) == len(values["texts"])
    assert len(config.start.layers) == config.model.num_hidden_layers


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("texts=[]", "must not be empty"),
        ("teachers=[]", "must not be empty"),
        ("dev=[]", "must not be empty"),
        ("texts=[{source: a, limit: 0}]", r"texts\[0\]: limit must be positive"),
        ("texts=[{source: a, sauce: b}]", r"unknown key texts\[0\]\.sauce"),
        ("groups=0", "groups must be positive"),
        ("temperature=0", "temperature must be positive"),
        ("cosine_weight=-1", "cosine_weight must be positive"),
        ("max_texts=0", "max_texts must be positive"),
        ("model.hidden_size=33", "is not a multiple of"),
        ("weights=1", "unknown key weights"),
    ],
)
def test_invalid_config_is_an_error(config, override, message):
    with pytest.raises(InputError, match=message) as error:
        config(override)
    assert "\n" not in str(error.value)


def test_all_weights_0_are_refused(config):
    with pytest.raises(InputError, match="correlation_weight must not be negative, nor all 0"):
        config("cosine_weight=0", "squared_weight=0", "similarity_weight=0")


def test_every_group_occurs_once_per_epoch(config):
    task, _ = prepare(config("groups=7"), World())
    count = len(task.imitation.starts) - 1
    drawn = np.concatenate([task.imitation.choose_groups(update) for update in range(count)])  # seven epochs
    for epoch in range(7):
        assert sorted(drawn[epoch * count : (epoch + 1) * count]) == list(range(count))
    assert (task.imitation.choose_groups(3) == task.imitation.choose_groups(3)).all()
    assert list(drawn[:count]) != list(drawn[count : 2 * count])


def test_targets_of_an_update_match_its_texts(config, prepared):
    task, facts = prepare(config("groups=5"), World())
    batch = task.imitation._make(2)
    files = prepared.glob("texts/*/groups.jsonl")
    (file,) = [file for file in files if output_file.sha256_of(file.parent / GROUPS) == facts["texts_sha256"]]
    texts = [json.loads(line) for line in file.open()]
    chosen = [text for group in task.imitation.choose_groups(2) for text in texts[group]]
    tokenizer = task.metric.model.tokenizer
    assert batch.ids == [tokenizer.truncate(ids, 64) for ids in tokenizer.encode(chosen)]
    teachers = [teacher_models.load(folder, torch.device("cpu")) for folder in map(Path, config().teachers)]
    found = sum(torch.from_numpy(embed(chosen) @ embed(chosen).T) for embed in teachers) / 2
    assert torch.allclose(batch.cosines, found, atol=0.01)
    assert torch.allclose(batch.targets.norm(dim=1), torch.ones(len(chosen)), atol=1e-5)
    assert facts["texts"] == sum(map(len, texts))


def test_chunks_do_not_change_the_loss(config):
    def gradients(*more):
        task, _ = prepare(config("similarity_weight=0.5", "squared_weight=0.3", *more), World())
        parts = [part()[0] for part in task.losses(1)]
        sum(parts).backward()
        return sum(parts).item(), {name: p.grad for name, p in task.model.named_parameters()}

    (loss, whole), (chunked_loss, chunked) = gradients("chunk_tokens=100000"), gradients("chunk_tokens=60")
    assert chunked_loss == pytest.approx(loss, abs=1e-5)
    for name, gradient in whole.items():
        if gradient is not None:
            assert torch.allclose(gradient, chunked[name], atol=1e-5), name


def test_changed_texts_or_start_are_recomputed(config):
    """Until training starts, a run's configuration may change; texts and start model are then made again."""
    one, facts = prepare(config("seed=1"), World())
    other, other_facts = prepare(config("seed=2"), World())
    assert facts["texts_sha256"] != other_facts["texts_sha256"]
    assert one.metric.model.hash != other.metric.model.hash
    fresh, _ = prepare(config("start=null"), World())
    assert fresh.metric.model.hash != one.metric.model.hash
    again, again_facts = prepare(config("seed=1"), World())
    assert (again_facts, again.metric.model.hash) == (facts, one.metric.model.hash)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("teachers=[nowhere]", "nowhere: no model.safetensors; expected a model folder"),
        ("texts=[{source: nothing.txt}]", "no such file"),
        ("model.hidden_size=64", "the teachers' embeddings have width 56, the encoder's have width 64"),
        ("model.vocab_size=30000", "too few|vocab"),
    ],
)
def test_bad_input_gives_one_line_and_exit_status_2(run, arguments, tmp_path, override, message):
    status, errors = run("train.distill", *arguments(tmp_path / "run", "max_texts=60", override))
    assert status == 2, errors
    (line,) = [line for line in errors.splitlines() if line.startswith("error: ")]
    assert any(part in line for part in message.split("|"))
    assert "Traceback" not in errors


@pytest.fixture(scope="module")
def whole(sources, teachers, tmp_path_factory):
    return tmp_path_factory.mktemp("whole")


@pytest.fixture
def finished(arguments, whole):
    """Return the folder of a finished distillation, which tests may read and copy."""
    if not (whole / "run" / "model").is_dir():
        status, errors = Runner(whole / "output")("train.distill", *arguments(whole / "run"))
        assert status == 0, errors
    return whole / "run"


@pytest.mark.slow
def test_run_writes_a_model(finished, teachers):
    lines = log(finished)
    assert [line["update"] for line in lines] == [10, 20]
    assert lines[-1]["train_loss"] < 0.95 * lines[0]["train_loss"]
    info = saved_model.load(finished / "model").info
    assert info.provenance["objective"] == "distillation"
    assert info.provenance["teachers"] == [teacher_models.identity(teachers[k]) for k in ("bert", "mpnet")]


@pytest.mark.slow
def test_student_without_a_start_learns_the_similarities_of_its_teachers(run, arguments, teachers, tmp_path):
    status, errors = run("train.distill", *arguments(tmp_path / "run", "start=null", "updates=60"))
    assert status == 0, errors
    texts = next((tmp_path / "run").glob("texts/*/texts.txt")).read_text().splitlines()[:300]
    targets = [teacher_models.load(folder, torch.device("cpu"))(texts) for folder in teachers.values()]
    wanted = sum(target @ target.T for target in targets) / len(targets)
    (start,) = (tmp_path / "run" / "start").iterdir()

    def agreement(folder):
        embeddings = SimLLM(folder).embed(texts)
        embeddings /= np.linalg.norm(embeddings, axis=1, keepdims=True)
        return np.corrcoef((embeddings @ embeddings.T).ravel(), wanted.ravel())[0, 1]

    assert agreement(tmp_path / "run" / "model") > agreement(start) + 0.1


@pytest.mark.slow
def test_finished_run_is_not_repeated(run, arguments, finished, tmp_path):
    shutil.copytree(finished, tmp_path / "run")
    before = content(tmp_path / "run")
    status, errors = run("train.distill", *arguments(tmp_path / "run"))
    assert status == 0, errors
    assert "shard 1" not in errors
    changed = {name for name, data in content(tmp_path / "run").items() if before.get(name) != data}
    assert {str(name) for name in changed} <= {"config.json", "lock"}


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["vocabulary", "shard 1 of 1", "training", "update 10 "])
def test_a_killed_run_is_resumed_to_the_same_weights(run, arguments, finished, tmp_path, moment):
    started = run.start("train.distill", *arguments(tmp_path / "run"), pause_at=moment)
    started.signal(signal.SIGKILL)
    assert started.finish() == -signal.SIGKILL
    status, errors = run("train.distill", *arguments(tmp_path / "run"))
    assert status == 0, errors
    assert_same_weights(finished, tmp_path / "run")
    folders = [path.name for path in (tmp_path / "run").rglob("*")]
    assert not [name for name in folders if name.endswith((".partial", ".old"))]


@pytest.mark.slow
def test_a_run_stopped_among_its_shards_is_resumed_to_the_same_weights(run, arguments, finished, tmp_path):
    started = run.start("train.distill", *arguments(tmp_path / "run"), pause_at="shard 1 of 1")
    started.signal(signal.SIGTERM)
    assert started.finish() == 75, started.errors
    status, errors = run("train.distill", *arguments(tmp_path / "run"))
    assert status == 0, errors
    assert_same_weights(finished, tmp_path / "run")


@pytest.mark.slow
def test_a_damaged_shard_is_repaired_when_a_run_resumes(run, arguments, finished, tmp_path):
    shutil.copytree(finished, tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "states")
    (tmp_path / "run" / "log.jsonl").unlink()
    shard = next((tmp_path / "run" / "teachers").rglob("embeddings.npy"))
    shard.write_bytes(shard.read_bytes()[:-8])
    status, errors = run("train.distill", *arguments(tmp_path / "run"))
    assert status == 0, errors
    assert errors.count("damaged; its embeddings are computed again") == 1
    assert_same_weights(finished, tmp_path / "run")


@pytest.mark.slow
def test_several_processes_share_the_work(run, arguments, finished, tmp_path):
    ranks = run.ranks(2, "train.distill", *arguments(tmp_path / "run"))
    assert [rank.finish() for rank in ranks] == [0, 0], ranks[0].errors
    lines, expected = log(tmp_path / "run"), log(finished)
    assert [line["train_loss"] for line in lines] == pytest.approx(
        [line["train_loss"] for line in expected], rel=1e-3
    )
    texts = ["adds two lists", "returns the name of the file"]
    found, one = (SimLLM(folder / "model").embed(texts) for folder in (tmp_path / "run", finished))
    assert np.abs(found - one).max() < 1e-2


@pytest.mark.slow
def test_bad_input_of_several_processes_is_reported_once(run, arguments, tmp_path):
    ranks = run.ranks(2, "train.distill", *arguments(tmp_path / "run", "teachers=[nowhere]"))
    assert [rank.finish() for rank in ranks] == [2, 2]
    errors = ranks[0].errors + ranks[1].errors
    assert errors.count("error: ") == 1
    assert "Traceback" not in errors


@pytest.mark.slow
def test_resume_with_another_configuration_is_refused(run, arguments, finished, tmp_path):
    shutil.copytree(finished, tmp_path / "run")
    status, errors = run("train.distill", *arguments(tmp_path / "run", "temperature=0.1"))
    assert status == 2
    assert "made with another temperature; choose another `out`" in errors
