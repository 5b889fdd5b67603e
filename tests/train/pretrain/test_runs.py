"""Real training runs in processes of their own: they learn, stop, are killed, and go on."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from random import Random

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from simllm import SimLLM
from tests.conftest import ROOT
from train.runtime.config import PretrainConfig, load
from train.runtime.optimizer import learning_rate

SMALL = [
    "model.vocab_size=600",
    "model.hidden_size=32",
    "model.intermediate_size=64",
    "batch_tokens=1024",
    "updates=24",
    "warmup_updates=4",
    "learning_rate=0.01",
    "evaluate_every=4",
    "test_texts=200",
]


def command(corpus_file, out, *overrides):
    arguments = [f"out={out}", f"corpus.sources=[{corpus_file}]", *SMALL, *overrides]
    return [sys.executable, "-m", "train.pretrain", "configs/debug.yaml", *arguments]


def run(*arguments):
    return subprocess.run(
        command(*arguments), cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )


def log(out):
    return [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]


def weights(out):
    newest = sorted((out / "states").glob("state-*"))[-1]
    return load_file(newest / "tensors.safetensors")


@pytest.fixture(scope="module")
def finished(comments, tmp_path_factory):
    """An uninterrupted run: its corpus file and its folder."""
    folder = tmp_path_factory.mktemp("pretrain")
    corpus_file = folder / "comments.jsonl"
    corpus_file.write_text("".join(json.dumps({"text": text}) + "\n" for text in comments))
    done = run(corpus_file, folder / "run")
    assert done.returncode == 0, done.stderr
    return corpus_file, folder / "run"


def timeless(lines):
    """The log without what depends on when a run was started."""
    return [
        {k: v for k, v in line.items() if k not in ("seconds", "tokens_per_second", "mfu")} for line in lines
    ]


def assert_same_weights(out, other):
    one, two = weights(out), weights(other)
    assert one.keys() == two.keys()
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_it_learns_and_keeps_the_best_model(finished):
    _, out = finished
    lines = log(out)
    assert [line["update"] for line in lines] == [4, 8, 12, 16, 20, 24]
    perplexities = [line["test_perplexity"] for line in lines]
    assert perplexities[-1] < 0.75 * perplexities[0]
    provenance = json.loads((out / "model" / "simllm.json").read_text())["provenance"]
    assert provenance["test_perplexity"] == min(perplexities)
    assert provenance["updates"] == lines[int(np.argmin(perplexities))]["update"]
    scores = SimLLM(out / "model").score(["adds two numbers", "closes it"], ["adds two numbers", "opens it"])
    assert scores.values[0] == pytest.approx(1.0)
    assert len(list((out / "states").iterdir())) == 2


def test_the_best_model_holds_the_weights_of_its_update(finished):
    _, out = finished
    lines = log(out)
    assert min(lines, key=lambda line: line["test_perplexity"]) is lines[-1]
    stored, state = load_file(out / "model" / "model.safetensors"), weights(out)
    assert torch.equal(
        stored["embeddings.word_embeddings.weight"], state["model.encoder.embeddings.token.weight"]
    )


def test_it_starts_from_vectors_of_its_corpus(finished, tmp_path):
    """At a learning rate of nothing it stays there."""
    corpus_file, _ = finished
    still = ["updates=1", "warmup_updates=1", "learning_rate=1e-9", "warmup_start=1e-9", "weight_decay=1e-9"]
    done = run(corpus_file, tmp_path / "run", *still, "token_vectors=ppmi", "model.initializer_range=0.05")
    assert done.returncode == 0, done.stderr
    (file,) = (tmp_path / "run" / "vectors").glob("*/vectors.npy")
    vectors = np.load(file)
    assert vectors.shape == (600, 32)
    start = weights(tmp_path / "run")["model.encoder.embeddings.token.weight"].numpy()
    assert start == pytest.approx(0.05 * vectors, abs=1e-6)
    assert start.std() == pytest.approx(0.05, abs=1e-4)


def test_killed_at_any_moment_it_ends_with_the_same_weights(finished, tmp_path):
    """25 times, every update saving its state; and no checkpoint is ever half-written."""
    corpus_file, _ = finished
    often = ["evaluate_every=1", "test_texts=50", "updates=500"]
    uninterrupted, out, random = tmp_path / "uninterrupted", tmp_path / "run", Random(0)
    assert run(corpus_file, uninterrupted, *often).returncode == 0
    half_written = 0
    for kill in range(25):
        process = subprocess.Popen(
            command(corpus_file, out, *often), cwd=ROOT, stderr=subprocess.PIPE, text=True
        )
        wanted = random.choice(["training", "update"])  # before or after this start's first evaluation
        for line in process.stderr:
            if line.startswith(wanted):
                time.sleep(random.uniform(0, 0.5))
                while kill % 3 == 0 and process.poll() is None and not list(out.glob("states/*.partial")):
                    pass  # every third one while it saves
                process.kill()
                break
        assert process.wait() == -signal.SIGKILL
        process.stderr.close()
        half_written += any(out.rglob("*.partial"))
    assert half_written
    assert 0 < len(log(out)) < 500
    assert run(corpus_file, out, *often).returncode == 0
    assert_same_weights(out, uninterrupted)
    assert timeless(log(out)) == timeless(log(uninterrupted))


def test_a_full_disk_loses_nothing_that_was_saved(finished, tmp_path):
    corpus_file, uninterrupted = finished
    out = tmp_path / "run"
    stop_early = command(corpus_file, out)
    process = subprocess.Popen(stop_early, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        if line.startswith("update 8 "):
            process.kill()
            break
    process.communicate()
    before = {file: file.read_bytes() for file in (out / "states").rglob("*") if file.is_file()}
    for blocks in (max(map(len, before.values())) // 2048, 60):  # what the model fits into, and what not
        limited = ["bash", "-c", f'ulimit -f {blocks}; exec "$@"', "-", *stop_early]
        done = subprocess.run(limited, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 2
        assert done.stderr.splitlines()[-1].startswith(f"error: {out}/")
        assert {file: file.read_bytes() for file in before} == before
        assert not list(out.rglob("*.partial"))
    assert run(corpus_file, out).returncode == 0
    assert_same_weights(out, uninterrupted)


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGINT])
def test_the_signal_decides_on_the_status(finished, tmp_path, number):
    corpus_file, _ = finished
    process = subprocess.Popen(
        command(corpus_file, tmp_path / "run", "updates=100000"), cwd=ROOT, stderr=subprocess.PIPE, text=True
    )
    for line in process.stderr:
        if line.startswith("update 4 "):
            process.send_signal(number)
            break
    assert "the same command goes on" in process.communicate(timeout=60)[1]
    assert process.returncode == {signal.SIGUSR1: 75, signal.SIGINT: 130}[number]


def test_begun_by_one_process_and_ended_by_two(finished, tmp_path):
    """The data are dealt out anew: no text twice, none left out; the weights differ by rounding."""
    corpus_file, _ = finished
    plain = ["model.hidden_dropout_prob=0", "model.attention_probs_dropout_prob=0", "accumulation=2"]
    alone, out = tmp_path / "alone", tmp_path / "run"
    assert run(corpus_file, alone, *plain).returncode == 0
    process = subprocess.Popen(command(corpus_file, out, *plain), cwd=ROOT, stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        if line.startswith("update 12 "):
            process.terminate()
            break
    process.communicate(timeout=60)
    assert process.returncode == 75
    done = subprocess.run(
        torchrun(corpus_file, out, *plain), cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert [line["tokens"] for line in log(out)] == [line["tokens"] for line in log(alone)]
    one, two = weights(out), weights(alone)
    for name in one:
        if name.startswith("model."):
            assert (one[name] - two[name]).abs().max() < 1e-3, name


def torchrun(corpus_file, out, *overrides):
    """The command that trains in two processes."""
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    return ["env", "OMP_NUM_THREADS=1", *launch, *command(corpus_file, out, *overrides)[1:]]


def test_when_one_of_two_processes_is_killed_both_go_on_together(finished, tmp_path):
    corpus_file, _ = finished
    undisturbed, out = tmp_path / "undisturbed", tmp_path / "run"
    limits = {"cwd": ROOT, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    assert (
        subprocess.run(torchrun(corpus_file, undisturbed), **limits, timeout=300, check=False).returncode == 0
    )
    for rank in (0, 1):
        process = subprocess.Popen(torchrun(corpus_file, out), **limits)
        for line in process.stderr:
            if line.startswith("update "):
                ranks = subprocess.run(
                    ["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=True
                )
                os.kill(int(ranks.stdout.split()[rank]), signal.SIGKILL)
                break
        process.communicate(timeout=120)
        assert process.returncode == 1
    done = subprocess.run(torchrun(corpus_file, out), **limits, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert "resuming after update" in done.stderr
    assert_same_weights(out, undisturbed)


def test_processes_that_share_no_folder_do_not_train(finished, tmp_path):
    """As on two machines whose disks are their own."""
    corpus_file, _ = finished
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    words = command(corpus_file, "run")
    words[3] = str(ROOT / words[3])
    group = {"PYTHONPATH": str(ROOT), "WORLD_SIZE": "2", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1"}
    group["MASTER_PORT"] = str(29_500 + os.getpid() % 500)
    processes = [
        subprocess.Popen(
            words,
            cwd=tmp_path / name,
            env=os.environ | group | {"RANK": str(rank)},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank, name in enumerate(("one", "other"))
    ]
    errors = [process.communicate(timeout=60)[1] for process in processes]
    assert [process.returncode for process in processes] == [2, 2]
    assert all("not the same folder for all processes" in error for error in errors)


def test_updates_without_a_finite_gradient_are_skipped_then_the_run_stops(finished, tmp_path):
    corpus_file, _ = finished
    bad = ["learning_rate=1e30", "warmup_updates=3", "max_skipped=4", "updates=100"]
    done = run(corpus_file, tmp_path / "run", *bad)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("error: 5 updates in a row had no finite gradient; the last is update ")
    assert "learning rate 9.69e+29" in last
    assert "epoch 0" in last
    assert "line of train.txt" in last


def test_curves_for_tensorboard(finished, tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    corpus_file, _ = finished
    assert run(corpus_file, tmp_path / "run", "tensorboard=true").returncode == 0
    events = EventAccumulator(str(tmp_path / "run" / "tensorboard")).Reload()
    curve = [
        (event.step, pytest.approx(event.value, rel=1e-5)) for event in events.Scalars("test_perplexity")
    ]
    assert curve == [(line["update"], line["test_perplexity"]) for line in log(tmp_path / "run")]


def test_a_dry_run_trains_nothing(finished, tmp_path):
    corpus_file, _ = finished
    done = run(corpus_file, tmp_path / "run", "--dry-run")
    assert done.returncode == 0
    rows = dict(line.split("  ", 1) for line in done.stdout.splitlines())
    assert {"parameters", "memory", "arithmetic", "time"} <= rows.keys()
    assert rows["tokens an update"].split() == ["1,024", "=", "1", "x", "1,024"]
    assert not (tmp_path / "run").exists()


def test_float16_scales_its_loss(finished, tmp_path):
    corpus_file, _ = finished
    done = run(corpus_file, tmp_path / "run", "precision=fp16", "updates=8")
    assert done.returncode == 0, done.stderr
    newest = sorted((tmp_path / "run" / "states").glob("state-*"))[-1]
    assert json.loads((newest / "state.json").read_text())["scaler"]["scale"] > 1
    perplexities = [line["test_perplexity"] for line in log(tmp_path / "run")]
    assert perplexities[-1] < perplexities[0]


def test_asked_to_stop_it_saves_and_goes_on(finished, tmp_path):
    corpus_file, uninterrupted = finished
    out = tmp_path / "run"
    process = subprocess.Popen(command(corpus_file, out), cwd=ROOT, stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        if line.startswith("update 4 "):
            process.send_signal(signal.SIGTERM)
            break
    rest = process.stderr.read()
    assert process.wait(timeout=60) == 75
    assert "the same command goes on" in rest
    assert run(corpus_file, out).returncode == 0
    assert_same_weights(out, uninterrupted)
    assert timeless(log(out)) == timeless(log(uninterrupted))
    assert (out / "model" / "model.safetensors").read_bytes() == (
        uninterrupted / "model" / "model.safetensors"
    ).read_bytes()


def test_a_damaged_state_is_refused_and_the_one_before_it_used(finished, tmp_path):
    corpus_file, uninterrupted = finished
    out = tmp_path / "run"
    assert run(corpus_file, out).returncode == 0
    newest = sorted((out / "states").glob("state-*"))[-1] / "tensors.safetensors"
    data = bytearray(newest.read_bytes())
    data[len(data) // 2] ^= 1
    newest.write_bytes(data)
    done = run(corpus_file, out)
    assert done.returncode == 0
    assert f"{newest.parent} is damaged (checksum differs)" in done.stderr
    assert "resuming after update 20" in done.stderr
    assert_same_weights(out, uninterrupted)


def test_when_every_state_is_damaged_nothing_is_overwritten(finished, tmp_path):
    corpus_file, uninterrupted = finished
    out = tmp_path / "run"
    shutil.copytree(uninterrupted, out)
    for state in (out / "states").iterdir():
        (state / "tensors.safetensors").write_bytes(b"")
    before = (out / "model" / "model.safetensors").read_bytes()
    done = run(corpus_file, out)
    assert done.returncode == 2
    assert "every saved state is damaged; remove the folder to start anew" in done.stderr
    assert (out / "model" / "model.safetensors").read_bytes() == before


def test_two_processes_do_not_share_a_folder(finished, tmp_path):
    corpus_file, _ = finished
    process = subprocess.Popen(
        command(corpus_file, tmp_path / "run"), cwd=ROOT, stderr=subprocess.PIPE, text=True
    )
    process.stderr.readline()
    done = run(corpus_file, tmp_path / "run")
    process.kill()
    process.wait()
    process.stderr.close()
    assert (done.returncode, "another process is training there" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("override", "key"), [("learning_rate=0.02", "learning_rate"), ("objective=masked", "objective")]
)
def test_another_configuration_does_not_resume(finished, override, key):
    corpus_file, out = finished
    done = run(corpus_file, out, override)
    assert done.returncode == 2
    assert done.stderr == f"error: {out}: made with another {key}; choose another `out`\n"


def test_a_key_that_came_later_changes_no_older_run(finished):
    """At its default, it stands neither in a run's configuration nor in what identifies it."""
    corpus_file, out = finished
    assert "objective" not in json.loads((out / "config.json").read_text())
    done = run(corpus_file, out, "objective=permuted")
    assert done.returncode == 0, done.stderr


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
def test_bad_input_gets_one_clear_line_and_exit_2(tmp_path, arguments, message):
    done = subprocess.run(
        [sys.executable, "-m", "train.pretrain", *arguments, f"out={tmp_path}/run"],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("error: ")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_the_learning_rate_of_the_paper():
    config = load(PretrainConfig, ROOT / "configs" / "base.yaml", [])
    assert learning_rate(0, config) == 1e-7
    assert learning_rate(5_000, config) == pytest.approx(5.005e-5)
    assert learning_rate(10_000, config) == 1e-4
    assert learning_rate(30_000, config) == pytest.approx(0.5e-4)
    assert learning_rate(50_000, config) == 0.0
