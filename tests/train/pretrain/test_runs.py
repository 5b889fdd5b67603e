"""The pretraining command: it learns, keeps the best model, and reports bad input."""

import json
import shutil
import signal

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from simllm import SimLLM
from simllm.evaluation.model_variants import load_checkpoints
from simllm.model import saved_model
from tests.train.training_processes import SMALL, assert_same_weights, log, pretraining, states, weights

pytestmark = pytest.mark.slow


def test_run_learns_and_keeps_the_best_model(finished_run):
    lines = log(finished_run)
    assert [line["update"] for line in lines] == [4, 8, 12, 16, 20, 24]
    perplexities = [line["test_perplexity"] for line in lines]
    assert perplexities[-1] < 0.75 * perplexities[0]
    provenance = json.loads((finished_run / "model" / "simllm.json").read_text())["provenance"]
    assert provenance["test_perplexity"] == min(perplexities)
    assert provenance["updates"] == lines[int(np.argmin(perplexities))]["update"]
    metric = SimLLM(finished_run / "model")
    scores = metric.score(["adds two numbers", "closes it"], ["adds two numbers", "opens it"])
    assert scores.values[0] == pytest.approx(1.0)
    assert [state.name for state in states(finished_run)] == ["state-00000020", "state-00000024"]


def test_best_model_has_the_weights_of_its_update(finished_run):
    lines = log(finished_run)
    assert min(lines, key=lambda line: line["test_perplexity"]) is lines[-1]
    stored, state = load_file(finished_run / "model" / "model.safetensors"), weights(finished_run)
    assert torch.equal(
        stored["embeddings.word_embeddings.weight"], state["model.encoder.embeddings.token.weight"]
    )


def test_command_trains_in_a_folder_with_a_non_ascii_name(run, finished_run, few_comments, tmp_path):
    """The run is stopped and resumed."""
    out = tmp_path / "läuft"
    arguments = pretraining(few_comments, out)
    started = run.start("train.pretrain", *arguments, pause_at="update 8 ")
    started.signal(signal.SIGTERM)
    assert started.finish() == 75
    assert "rerun the same command to resume" in started.errors
    status, errors = run("train.pretrain", *arguments)
    assert status == 0, errors
    assert "resuming after update" in errors
    assert_same_weights(out, finished_run)
    provenance = json.loads((out / "model" / "simllm.json").read_text())["provenance"]
    assert provenance["config"]["out"] == str(out)


@pytest.fixture
def prepared(finished_run, tmp_path):
    """Return a copy of a run folder that has only the corpus, the vocabulary and the shards."""
    out = shutil.copytree(finished_run, tmp_path / "run")
    for name in ("states", "model", "vectors"):
        shutil.rmtree(out / name)
    (out / "log.jsonl").unlink()
    return out


def test_embeddings_start_from_ppmi_vectors(run, prepared, few_comments):
    """Token embeddings start as PPMI vectors, scaled to `initializer_range`.

    The test reads them after an update with a learning rate near zero, which hardly changes them.
    """
    still = ["updates=1", "warmup_updates=1", "learning_rate=1e-9", "warmup_start=1e-9", "weight_decay=1e-9"]
    more = [*still, "token_vectors=ppmi", "model.initializer_range=0.05"]
    status, errors = run("train.pretrain", *pretraining(few_comments, prepared, *more))
    assert status == 0, errors
    (file,) = (prepared / "vectors").glob("*/vectors.npy")
    vectors = np.load(file)
    assert vectors.shape == (400, 32)
    start = weights(prepared)["model.encoder.embeddings.token.weight"].numpy()
    assert start == pytest.approx(0.05 * vectors, abs=1e-6)
    assert start.std() == pytest.approx(0.05, abs=1e-4)


def test_run_stops_after_several_updates_without_a_finite_gradient(run, prepared, few_comments):
    bad = ["learning_rate=1e30", "warmup_updates=3", "max_skipped=4", "updates=100"]
    status, errors = run("train.pretrain", *pretraining(few_comments, prepared, *bad))
    assert status == 1
    last = errors.splitlines()[-1]
    assert last.startswith("error: 5 updates in a row had no finite gradient; the last is update ")
    assert "learning rate 9.69e+29" in last
    assert "epoch 0" in last
    assert "line of train.txt" in last


def test_tensorboard_log(run, prepared, few_comments):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    status, errors = run("train.pretrain", *pretraining(few_comments, prepared, "tensorboard=true"))
    assert status == 0, errors
    events = EventAccumulator(str(prepared / "tensorboard")).Reload()
    curve = [
        (event.step, pytest.approx(event.value, rel=1e-5)) for event in events.Scalars("test_perplexity")
    ]
    assert curve == [(line["update"], line["test_perplexity"]) for line in log(prepared)]


def test_a_dry_run_trains_nothing(run, few_comments, tmp_path):
    command = ["train.pretrain", *pretraining(few_comments, tmp_path / "run"), "--dry-run", "accumulation=2"]
    started = run.start(*command)
    assert started.finish() == 0, started.errors
    rows = dict(line.split("  ", 1) for line in started.output.splitlines())
    assert {"parameters", "memory", "arithmetic", "time"} <= rows.keys()
    assert rows["tokens per update"].split() == ["2,048", "=", "2", "x", "1,024"]
    assert not (tmp_path / "run").exists()


def test_float16_scales_its_loss(run, prepared, few_comments):
    more = ["precision=fp16", "updates=6", "evaluate_every=3"]
    status, errors = run("train.pretrain", *pretraining(few_comments, prepared, *more))
    assert status == 0, errors
    assert json.loads((states(prepared)[-1] / "state.json").read_text())["scaler"]["scale"] > 1
    perplexities = [line["test_perplexity"] for line in log(prepared)]
    assert perplexities[-1] < perplexities[0]


def test_new_config_keys_do_not_change_older_runs(run, resumable_run, few_comments):
    """A run made before a key existed can be resumed with this key, if the key has its default value."""
    assert "objective" not in json.loads((resumable_run / "config.json").read_text())
    started = run.start("train.pretrain", *pretraining(few_comments, resumable_run, "objective=permuted"))
    started.until_written("resuming after update")
    started.signal(signal.SIGKILL)
    started.finish()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.yaml"], "none.yaml: cannot be read"),
        (["configs/debug.yaml", "updats=3"], "unknown key updats"),
        (["configs/debug.yaml", "packing=x", "precision=y", "updates=0"], "packing must be"),
        (["configs/debug.yaml", "batch_tokens=32"], "batch_tokens must hold the longest input, 64 tokens"),
        (["configs/debug.yaml", "corpus.sources=[none.jsonl]"], "'none.jsonl': no such file"),
    ],
)
def test_bad_input_gives_one_line_and_exit_status_2(run, tmp_path, arguments, message):
    status, errors = run("train.pretrain", *arguments, f"out={tmp_path}/run")
    assert status == 2
    assert errors.splitlines()[-1].startswith("error: ")
    assert message in errors
    assert "Traceback" not in errors


def test_snapshots_are_kept_beside_the_best_model_for_the_study(run, prepared, few_comments, tmp_path):
    more = ["updates=10", "evaluate_every=2", "snapshot_every=4"]
    status, errors = run("train.pretrain", *pretraining(few_comments, prepared, *more))
    assert status == 0, errors
    perplexities = {line["update"]: line["test_perplexity"] for line in log(prepared)}
    assert sorted(folder.name for folder in (prepared / "snapshots").iterdir()) == [
        "update-00000004", "update-00000008", "update-00000010",
    ]  # fmt: skip
    _, *snapshots = load_checkpoints(prepared / "snapshots")
    assert [model.updates for model in snapshots] == [4, 8, 10]
    for update in (4, 8, 10):
        snapshot = saved_model.load(prepared / "snapshots" / f"update-{update:08}")
        assert snapshot.info.provenance["test_perplexity"] == perplexities[update]


def test_pretraining_continues_from_a_model_folder(run, finished_run, few_comments, tmp_path):
    """The new run has the shape and vocabulary of its start, and begins where the start has ended."""
    start, out = finished_run / "model", tmp_path / "run"
    more = [override for override in SMALL if not override.startswith("model.")]
    continued = [f"start={start}", "model=null", "token_vectors=random"]
    common = ["configs/debug.yaml", f"out={out}", f"corpus.sources=[{few_comments}]", *more, *continued]
    status, errors = run("train.pretrain", *common, "updates=8", "learning_rate=0.001")
    assert status == 0, errors
    before, after = saved_model.load(start), saved_model.load(out / "model")
    assert after.tokenizer.hash == before.tokenizer.hash
    assert after.info.provenance["start"]["hash"] == before.hash
    first = log(finished_run)[0]["test_perplexity"]
    assert log(out)[0]["test_perplexity"] < first

    status, errors = run("train.pretrain", *common, "model={vocab_size: 400, hidden_size: 64}")
    assert status == 2
    assert "model.hidden_size must be 32, as in start, or model left out" in errors
