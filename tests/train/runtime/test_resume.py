"""Runs that are stopped, killed or out of disk space end with the same weights after a resume."""

import os
import shutil
import signal
import time
from random import Random

import pytest

from tests.train.training_processes import (
    assert_same_weights,
    content,
    is_paused,
    log,
    pretraining,
    states,
    weights,
    without_times,
)

pytestmark = pytest.mark.slow
RERUN = "rerun the same command to resume"


def test_stopped_run_resumes_and_ends_with_the_same_weights(run, resumable_run, few_comments, finished_run):
    status, errors = run("train.pretrain", *pretraining(few_comments, resumable_run))
    assert status == 0, errors
    assert "resuming after update" in errors
    assert_same_weights(resumable_run, finished_run)
    assert without_times(log(resumable_run)) == without_times(log(finished_run))
    model = "model/model.safetensors"
    assert (resumable_run / model).read_bytes() == (finished_run / model).read_bytes()


@pytest.mark.parametrize(("number", "status"), [(signal.SIGUSR1, 75), (signal.SIGINT, 130)])
def test_exit_status_depends_on_the_signal(run, resumable_run, few_comments, number, status):
    started = run.start("train.pretrain", *pretraining(few_comments, resumable_run), pause_at="resuming")
    started.signal(number)
    assert started.finish() == status
    assert RERUN in started.errors


# Every Python process imports `sitecustomize` first. This one pauses the process that learns a vocabulary.
PAUSE = """
import os, pathlib, signal, sys
if "train.tokens.vocabulary" in sys.orig_argv:
    pathlib.Path(__file__).with_name("learner").write_text(f"{os.getpid()}\\n")
    os.kill(os.getpid(), signal.SIGSTOP)
"""


@pytest.fixture
def paused_learner(tmp_path):
    """Return the folder of a module that pauses the process in which a training learns its vocabulary."""
    folder = tmp_path / "paused"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(PAUSE)
    return folder


def learner(started, paused_learner):
    """Wait until the child process that learns the vocabulary has paused; return its process id."""
    file = paused_learner / "learner"
    started.until(lambda: file.exists() and file.read_text().endswith("\n"))
    child = int(file.read_text())
    started.until(lambda: is_paused(child))
    return child


@pytest.mark.parametrize(
    ("number", "status", "to_all"),
    [
        (signal.SIGTERM, 75, False),
        (signal.SIGINT, 130, True),
        (signal.SIGUSR1, 75, True),
    ],
)
def test_signal_while_the_vocabulary_is_learned(
    run, few_comments, tmp_path, paused_learner, number, status, to_all
):
    """The run and its child process end, whether both get the signal (SLURM, Ctrl+C) or only the run."""
    command = ["train.pretrain", *pretraining(few_comments, tmp_path / "run")]
    started = run.start(*command, PYTHONPATH=str(paused_learner))
    child = learner(started, paused_learner)
    if to_all:
        os.kill(child, number)
    started.signal(number)
    assert started.finish(10) == status
    assert started.errors.endswith(f"vocabulary\nstopped; {RERUN}\n")
    assert list((tmp_path / "run" / "vocabulary").iterdir()) == []
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def test_killed_vocabulary_process_is_an_error(run, few_comments, tmp_path, paused_learner):
    command = ["train.pretrain", *pretraining(few_comments, tmp_path / "run")]
    started = run.start(*command, PYTHONPATH=str(paused_learner))
    os.kill(learner(started, paused_learner), signal.SIGKILL)
    assert started.finish(10) == 2
    reason = "its process was killed by signal 9, perhaps for lack of memory"
    assert started.errors.endswith(f"error: vocabulary of 400 tokens cannot be learned: {reason}\n")


def test_signal_while_processes_wait_for_the_first_one(run, few_comments, tmp_path, paused_learner):
    command = ["train.pretrain", *pretraining(few_comments, tmp_path / "run")]
    ranks = run.ranks(2, *command, PYTHONPATH=str(paused_learner))
    learner(ranks[0], paused_learner)
    for rank in ranks:
        rank.signal(signal.SIGUSR1)
    assert [rank.finish(20) for rank in ranks] == [75, 75]


def test_resumes_from_the_state_before_a_damaged_one(run, resumable_run, few_comments, finished_run):
    older, newest = states(resumable_run)
    file = newest / "tensors.safetensors"
    file.write_bytes(file.read_bytes()[:-1])
    status, errors = run("train.pretrain", *pretraining(few_comments, resumable_run))
    assert status == 0, errors
    assert f"warning: {newest} is damaged (checksum differs)" in errors
    assert f"resuming after update {int(older.name[-8:])}\n" in errors
    assert_same_weights(resumable_run, finished_run)


@pytest.mark.parametrize("fits", ["model", "nothing"])
def test_full_disk_keeps_saved_states(run, resumable_run, few_comments, finished_run, fits):
    before = content(resumable_run / "states")
    largest = max(map(len, before.values())) // 2 if fits == "model" else 5000
    status, errors = run("train.pretrain", *pretraining(few_comments, resumable_run), largest=largest)
    assert status == 2
    assert errors.splitlines()[-1].startswith(f"error: {resumable_run}/")
    assert "cannot be written" in errors.splitlines()[-1]
    assert content(resumable_run / "states") == before
    assert not list(resumable_run.rglob("*.partial"))
    assert run("train.pretrain", *pretraining(few_comments, resumable_run))[0] == 0
    assert_same_weights(resumable_run, finished_run)


def test_run_killed_at_random_moments_ends_with_the_same_weights(run, finished_run, few_comments, tmp_path):
    """The run saves a state after every update; every second kill comes while a state is being saved."""
    often = ["evaluate_every=1", "test_texts=20", "updates=40", "warmup_updates=10"]
    uninterrupted, out, random = tmp_path / "uninterrupted", tmp_path / "run", Random(0)
    assert run("train.pretrain", *pretraining(few_comments, uninterrupted, *often))[0] == 0
    half_written = 0
    for kill in range(6):
        started = run.start("train.pretrain", *pretraining(few_comments, out, *often))
        # Kill the run before or after its first evaluation.
        wanted = random.choice(["training", "update"])
        started.until_written(f"\n{wanted}")
        time.sleep(random.uniform(0, 0.1))
        while kill % 2 and started.process.is_alive() and not list(out.glob("states/.*.partial")):
            time.sleep(0.0005)  # without a pause, it would take the processor from the run
        started.signal(signal.SIGKILL)
        assert started.finish() == -signal.SIGKILL
        half_written += any(out.rglob("*.partial"))
    assert half_written
    assert 0 < len(log(out)) < 40
    assert run("train.pretrain", *pretraining(few_comments, out, *often))[0] == 0
    assert_same_weights(out, uninterrupted)
    assert without_times(log(out)) == without_times(log(uninterrupted))
    assert not [path for path in out.rglob(".*") if path.is_dir()]


def test_run_started_by_one_process_and_finished_by_two(run, few_comments, tmp_path):
    """When a second process joins, no text is repeated or lost; the weights differ only by rounding."""
    plain = ["model.hidden_dropout_prob=0", "model.attention_probs_dropout_prob=0", "accumulation=2"]
    alone, out = tmp_path / "alone", tmp_path / "run"
    assert run("train.pretrain", *pretraining(few_comments, alone, *plain))[0] == 0
    started = run.start("train.pretrain", *pretraining(few_comments, out, *plain), pause_at="update 12 ")
    started.signal(signal.SIGTERM)
    assert started.finish() == 75
    ranks = run.ranks(2, "train.pretrain", *pretraining(few_comments, out, *plain))
    assert [rank.finish() for rank in ranks] == [0, 0], ranks[0].errors
    assert [line["tokens"] for line in log(out)] == [line["tokens"] for line in log(alone)]
    one, two = weights(out), weights(alone)
    for name in one:
        if name.startswith("model."):
            assert (one[name] - two[name]).abs().max() < 1e-3, name


@pytest.mark.parametrize("processes", [1, 2])
def test_a_signal_does_not_wait_for_the_end_of_an_update(run, few_comments, tmp_path, processes):
    long = ["accumulation=40", "updates=3", "evaluate_every=1", "warmup_updates=0"]
    whole, out = tmp_path / "whole", tmp_path / "run"
    ranks = run.ranks(processes, "train.pretrain", *pretraining(few_comments, whole, *long))
    assert [rank.finish() for rank in ranks] == [0] * processes, ranks[0].errors
    ranks = run.ranks(processes, "train.pretrain", *pretraining(few_comments, out, *long))
    ranks[0].until(lambda: len(states(out)) == 1)
    os.kill(ranks[0].pid, signal.SIGTERM)  # alone: the other process learns of it at the end of the update
    assert [rank.finish() for rank in ranks] == [75] * processes
    assert "stopped after update 1;" in ranks[0].errors
    ranks = run.ranks(processes, "train.pretrain", *pretraining(few_comments, out, *long))
    assert [rank.finish() for rank in ranks] == [0] * processes, ranks[0].errors
    assert "resuming after update 1" in ranks[0].errors
    assert_same_weights(out, whole)


def test_when_one_of_two_processes_is_killed_both_resume_together(run, resumable_run, few_comments, tmp_path):
    undisturbed = shutil.copytree(resumable_run, tmp_path / "undisturbed")
    ranks = run.ranks(2, "train.pretrain", *pretraining(few_comments, undisturbed))
    assert [rank.finish() for rank in ranks] == [0, 0], ranks[0].errors
    for killed in (0, 1):
        ranks = run.ranks(
            2, "train.pretrain", *pretraining(few_comments, resumable_run), pause_at="\nupdate "
        )
        ranks[0].until_paused()
        ranks[killed].signal(signal.SIGKILL)
        if killed != 0:
            ranks[0].signal(signal.SIGCONT)
        assert ranks[killed].finish() == -signal.SIGKILL
        assert ranks[1 - killed].finish() != 0
    ranks = run.ranks(2, "train.pretrain", *pretraining(few_comments, resumable_run))
    assert [rank.finish() for rank in ranks] == [0, 0], ranks[0].errors
    assert "resuming after update" in ranks[0].errors
    assert_same_weights(resumable_run, undisturbed)
