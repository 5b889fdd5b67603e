"""Jobs on two nodes with two processes each: whatever happens to them, the weights are the same."""

import os
import subprocess
import sys

import pytest

from tests.conftest import ROOT
from tests.train.pretrain.test_runs import SMALL, assert_same_weights

SCRIPT = "slurm/pretrain.sbatch"


def arguments(texts, out, *overrides):
    return [
        "configs/debug.yaml",
        f"out={out}",
        f"corpus.sources=[{texts}]",
        *SMALL,
        "updates=100",
        "test_texts=50",
        *overrides,
    ]


@pytest.fixture(scope="module")
def undisturbed(texts, tmp_path_factory):
    """The folder of a run of four processes without SLURM."""
    out = tmp_path_factory.mktemp("undisturbed") / "run"
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=4", "-m", "train.pretrain"]
    done = subprocess.run(
        [*torchrun, *arguments(texts, out)],
        cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture
def submit(cluster, texts, tmp_path):
    """Submit the run into `tmp_path / "run"`, with options for sbatch."""
    return lambda *options: cluster.submit("--nodes=2", *options, SCRIPT, *arguments(texts, tmp_path / "run"))


@pytest.fixture
def assert_it_went_on(cluster, undisturbed, tmp_path):
    """The job saved, started again where it was, and ended with the weights of an undisturbed run."""

    def check(job):
        facts, output = cluster.finish(job), cluster.output(job)
        assert int(facts["Restarts"]) >= 1
        assert "the same command goes on" in output
        assert "resuming after update" in output
        assert_same_weights(tmp_path / "run", undisturbed)

    return check


def test_two_nodes_train_as_one_machine_does(cluster, submit, undisturbed, tmp_path):
    facts = cluster.finish(submit())
    assert (facts["NumNodes"], facts["Restarts"]) == ("2", "0")
    assert_same_weights(tmp_path / "run", undisturbed)


def test_preempted(cluster, submit, assert_it_went_on):
    job = submit()
    cluster.pause(job, "update 4 ")
    cluster.finish(cluster.submit("--partition=high", "--nodes=2", "--exclusive", "--wrap=true"))
    assert_it_went_on(job)


def test_out_of_time(cluster, submit, assert_it_went_on):
    job = submit("--time=2", "--signal=B:USR1@30")  # SLURM may be up to a minute early
    cluster.pause(job, "update 4 ")
    cluster.until(lambda: "asked to stop" in cluster.output(job), job, seconds=150)
    cluster.resume(job)
    assert_it_went_on(job)


def test_requeued_by_an_admin(cluster, submit, assert_it_went_on):
    job = submit()
    cluster.pause(job, "update 4 ")
    cluster.slurm("scontrol", "requeue", job)
    assert_it_went_on(job)


def test_cancelled_it_is_gone_until_it_is_submitted_again(cluster, submit, undisturbed, tmp_path):
    job = submit()
    cluster.pause(job, "update 4 ")
    cluster.slurm("scancel", job)
    assert cluster.finish(job, "CANCELLED")["Restarts"] == "0"
    assert "the same command goes on" in cluster.output(job)
    again = submit()
    cluster.finish(again)
    assert "resuming after update" in cluster.output(again)
    assert cluster.state(job) == "CANCELLED"
    assert_same_weights(tmp_path / "run", undisturbed)


def test_an_array_is_a_run_for_each_index(cluster, texts, tmp_path):
    """The number of the last of its jobs is also the number of the array."""
    array = cluster.submit("--array=1-2", SCRIPT, *arguments(texts, tmp_path / "seed-%a", "seed=%a"))
    cluster.pause(array, "update 4 ")
    cluster.slurm("scancel", "--batch", "--signal=USR1", f"{array}_2")  # as when its time is up
    cluster.resume(array)
    restarts = [cluster.finish(f"{array}_{index}")["Restarts"] for index in (1, 2)]
    assert restarts == ["0", "1"]
    with pytest.raises(AssertionError):
        assert_same_weights(tmp_path / "seed-1", tmp_path / "seed-2")


def test_bad_input_ends_it_with_one_clear_line(cluster, tmp_path):
    job = cluster.submit("--nodes=2", SCRIPT, "configs/debug.yaml", f"out={tmp_path}/run", "updats=3")
    facts = cluster.finish(job, "FAILED")
    assert (facts["ExitCode"], facts["Restarts"]) == ("2:0", "0")
    errors = [line for line in cluster.output(job).splitlines() if line.startswith("error: ")]
    assert len(errors) == 1
    assert "unknown key updats" in errors[0]
