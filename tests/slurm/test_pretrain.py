"""Pretraining jobs on a real SLURM cluster end with the same weights after any interruption."""

import contextlib
import os
import signal

import pytest

from tests.train.training_processes import Runner, assert_same_weights, pretraining

pytestmark = pytest.mark.slow

SCRIPT = "slurm/pretrain.sbatch"
# Long enough to be paused after the first evaluation, however fast the machine is.
LONG = ["updates=60", "warmup_updates=10", "evaluate_every=10"]
ONE_RANK = ["--nodes=1", "--ntasks-per-node=1"]
RERUN = "rerun the same command to resume"


@pytest.fixture
def submit(cluster, few_comments, tmp_path):
    """Return a function that submits a training run in `tmp_path / "run"`, with options for sbatch."""
    return lambda *options, out=None: cluster.submit(
        *options, SCRIPT, *pretraining(few_comments, out or tmp_path / "run", *LONG)
    )


def restarted(cluster, job):
    """Wait for the end of a job; return its number of restarts."""
    restarts = int(cluster.finish(job)["Restarts"])
    assert cluster.output(job).count("resuming after update") == restarts
    return restarts


def test_preempted_run_on_two_nodes_equals_a_run_on_one_machine(cluster, submit, few_comments, tmp_path):
    job = submit("--nodes=2", "--ntasks-per-node=2")
    cluster.pause(job, "update 10 ")
    cluster.finish(cluster.submit("--partition=high", "--nodes=2", "--exclusive", "--wrap=true"))
    assert restarted(cluster, job) == 1
    assert RERUN in cluster.output(job)
    undisturbed = tmp_path / "undisturbed"
    ranks = Runner(tmp_path / "output").ranks(
        4, "train.pretrain", *pretraining(few_comments, undisturbed, *LONG)
    )
    assert [rank.finish() for rank in ranks] == [0] * 4, ranks[0].errors
    assert_same_weights(tmp_path / "run", undisturbed)


def test_job_out_of_time(cluster, submit, few_comments, tmp_path):
    """At its time limit, a job is requeued if it has saved a state, but not if it still reads its corpus.

    The time limits are shortened only when one job has saved a state and the other job reads its corpus.
    """
    corpus = tmp_path / "slow.jsonl"
    os.mkfifo(corpus)  # nothing is written there
    limits = [*ONE_RANK, "--time=20", "--signal=B:USR1@600"]
    slow = pretraining(corpus, tmp_path / "slow", *LONG)
    too_short, job = cluster.submit(*limits, SCRIPT, *slow), submit(*limits)
    cluster.pause(job, "update 10 ")
    pipes = []

    def corpus_is_read():
        with contextlib.suppress(OSError):  # until the job reads, nobody can write
            pipes.append(os.open(corpus, os.O_WRONLY | os.O_NONBLOCK))
        return pipes

    cluster.until(corpus_is_read, too_short)
    for each in (job, too_short):
        cluster.set_time_limit(each, 9)
    for each in (job, too_short):  # SLURM checks every half minute
        cluster.until(lambda each=each: "asked to stop" in cluster.output(each), each)
    cluster.set_time_limit(job, 20)  # after the restart, the time is long enough
    cluster.resume(job)
    facts = cluster.finish(too_short, "FAILED")
    os.close(pipes[0])
    assert (facts["ExitCode"], facts["Restarts"]) == ("75:0", "0")
    reason = "not requeued: nothing was saved since the job started; give it more --time"
    assert cluster.output(too_short).splitlines()[-1] == reason
    assert restarted(cluster, job) == 1


def test_one_process_crashes_while_the_other_is_asked_to_stop(cluster, submit, tmp_path):
    job = submit("--nodes=2", "--ntasks-per-node=1")
    cluster.pause(job, "update 10 ")
    os.kill(cluster.ranks(job)[1], signal.SIGABRT)
    cluster.time_is_up(job)
    cluster.resume(job)
    assert restarted(cluster, job) == 1
    assert "Aborted" in cluster.output(job)


def test_job_requeued_by_an_admin_and_then_cancelled(cluster, submit, tmp_path):
    """A cancelled job is not started again."""
    job = submit(*ONE_RANK)
    cluster.pause(job, "update 10 ")
    cluster.slurm("scontrol", "requeue", job)
    cluster.pause(job, "resuming after update")
    cluster.slurm("scancel", job)
    assert cluster.finish(job, "CANCELLED")["Restarts"] == "1"
    assert cluster.output(job).count(RERUN) == 2
    assert "not requeued: somebody cancelled or requeued the job" in cluster.output(job).splitlines()[-1]


def test_job_array_trains_one_run_per_index(cluster, few_comments, tmp_path):
    """Only the job whose time is up is requeued: the last job, whose number is also that of the array."""
    runs = pretraining(few_comments, tmp_path / "seed-%a", *LONG, "seed=%a")
    array = cluster.submit("--array=1-2", *ONE_RANK, SCRIPT, *runs)
    cluster.pause(array, "update 10 ")
    cluster.time_is_up(f"{array}_2")
    cluster.resume(array)
    restarts = [cluster.finish(f"{array}_{index}")["Restarts"] for index in (1, 2)]
    assert restarts == ["0", "1"]
    with pytest.raises(AssertionError):
        assert_same_weights(tmp_path / "seed-1", tmp_path / "seed-2")
