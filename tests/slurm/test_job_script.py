"""Decisions of the job script, with fake SLURM commands instead of a cluster."""

import os
import signal
import subprocess
import sys
import time

import pytest

from tests.conftest import ROOT

SAVE = "mkdir -p $OUT/states/state-00000004; touch $OUT/states/state-00000004/sha256"
RESUBMITTED = "stopped before the end; requeueing\n"
TOO_SHORT = "not requeued: nothing was saved since the job started; give it more --time\n"


@pytest.fixture
def job(tmp_path):
    """Return a function that starts the job script, with shell commands (`ranks`) instead of a training."""
    programs, out = tmp_path / "bin", tmp_path / "run"
    programs.mkdir()
    scripts = {
        "srun": 'echo "$MASTER_ADDR:$MASTER_PORT ${RANK-unset}" > $ENVIRONMENT\neval "$RANKS"',
        "squeue": "exit 1",
        "sleep": "exit 0",
        "scontrol": """
            case "$*" in
                "show hostnames n[1-2]") printf 'n1\\nn2\\n' ;;
                "--oneliner show node n1") echo "NodeName=n1 NodeAddr=10.0.0.1 State=IDLE" ;;
                "--oneliner show job 30007") [ "$STATE" ] && echo "JobId=30007 JobState=$STATE Restarts=0" ;;
                "requeue 30007") echo requeued >> $REQUEUED; exit $REQUEUE_STATUS ;;
            esac""",
    }
    for name, script in scripts.items():
        (programs / name).write_text(f"#!/usr/bin/env bash\n{script}\n")
        (programs / name).chmod(0o755)
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "MASTER_"))},
        **{"SLURM_JOB_ID": "30007", "SLURM_JOB_NODELIST": "n[1-2]", "SLURM_JOB_NUM_NODES": "2"},
        **{"SLURM_CPUS_ON_NODE": "4", "PATH": os.environ["PATH"]},
        **{"ENVIRONMENT": str(tmp_path / "environment"), "REQUEUED": str(tmp_path / "requeued")},
        **{"OUT": str(out), "STATE": "RUNNING", "REQUEUE_STATUS": "0"},
    }
    # Activating the virtual environment puts its programs first in the PATH.
    (tmp_path / "venv" / "bin").mkdir(parents=True)
    activate = f'PATH="{programs}:{sys.prefix}/bin:$PATH"\n'
    (tmp_path / "venv" / "bin" / "activate").write_text(activate)
    environment["VIRTUAL_ENV"] = str(tmp_path / "venv")

    def start(ranks, **more):
        return subprocess.Popen(
            ["bash", "slurm/pretrain.sbatch", "configs/debug.yaml", f"out={out}"],
            cwd=ROOT, env=environment | {"RANKS": ranks} | more, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    return start


def finish(process):
    return process.communicate(timeout=60)[1], process.returncode


def requeued(tmp_path):
    return (tmp_path / "requeued").exists()


@pytest.mark.parametrize("status", [75, 134, 137, 138, 143])
def test_a_stopped_job_that_saved_a_state_is_requeued(job, tmp_path, status):
    errors, code = finish(job(f"{SAVE}; exit {status}"))
    assert (errors, code) == (RESUBMITTED, status)
    assert requeued(tmp_path)


def test_a_crash_that_saved_nothing_is_not_requeued(job, tmp_path):
    """Files that every start writes, and temporary files, do not count as progress."""
    files = "config.json lock .simllm states/.state-00000004.partial/sha256 .corpus.partial/train.txt"
    write = f"cd $OUT; for file in {files}; do mkdir -p $(dirname $file); touch $file; done"
    errors, code = finish(job(f"mkdir $OUT; ({write}); exit 134"))
    reason = "nothing was saved since the job started, and the training ended with exit status 134"
    assert (errors, code) == (f"not requeued: {reason}\n", 134)
    assert (tmp_path / "run" / ".corpus.partial" / "train.txt").exists()
    assert not requeued(tmp_path)


def test_states_saved_by_an_earlier_start_do_not_count(job, tmp_path):
    (tmp_path / "run" / "states" / "state-00000004").mkdir(parents=True)
    (tmp_path / "run" / "states" / "state-00000004" / "sha256").touch()
    assert finish(job(f"{SAVE}; exit 134"))[1] == 134
    assert not requeued(tmp_path)


@pytest.mark.parametrize("status", [75, 138, 143])
def test_job_preempted_before_its_first_state_is_requeued(job, tmp_path, status):
    assert finish(job(f"exit {status}")) == (RESUBMITTED, status)
    assert requeued(tmp_path)


@pytest.mark.parametrize("saved", [True, False])
def test_job_out_of_time_is_requeued_only_if_it_saved_a_state(job, tmp_path, saved):
    started = tmp_path / "started"
    process = job(
        f"trap '{SAVE if saved else ':'}; exit 75' USR1; touch {started}; "
        "for i in $(seq 600); do python -c 'import time; time.sleep(0.1)'; done"
    )
    while not started.exists():
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGUSR1)
    asked = "asked to stop: saving\n"
    assert finish(process) == (asked + (RESUBMITTED if saved else TOO_SHORT), 75)
    assert requeued(tmp_path) == saved


@pytest.mark.parametrize("status", [1, 2, 130])
def test_an_error_is_not_requeued(job, tmp_path, status):
    errors, code = finish(job(f"{SAVE}; exit {status}"))
    assert (errors, code) == (f"not requeued: the training ended with exit status {status}\n", status)
    assert not requeued(tmp_path)


def test_the_number_of_restarts_is_limited(job, tmp_path):
    limits = {"SLURM_RESTART_COUNT": "3", "SIMLLM_MAX_RESTARTS": "3"}
    errors, code = finish(job(f"{SAVE}; exit 75", **limits))
    reason = "this was restart 3, the last that SIMLLM_MAX_RESTARTS=3 allows"
    assert (errors, code) == (f"not requeued: {reason}\n", 75)
    assert not requeued(tmp_path)
    assert finish(job("rm -r $OUT; exit 75", **limits | {"SLURM_RESTART_COUNT": "2"}))[0] == RESUBMITTED


def test_a_cancelled_job_is_not_requeued(job, tmp_path):
    errors, _ = finish(job(f"{SAVE}; exit 75", STATE="CANCELLED"))
    reason = "somebody cancelled or requeued the job (its state is CANCELLED)"
    assert errors == f"{RESUBMITTED}not requeued: {reason}\n"
    assert not requeued(tmp_path)


def test_a_job_whose_state_is_unknown_is_requeued(job, tmp_path):
    assert finish(job(f"{SAVE}; exit 75", STATE=""))[0] == RESUBMITTED
    assert requeued(tmp_path)


def test_unanswered_controller_request_is_repeated(job, tmp_path):
    errors, _ = finish(job(f"{SAVE}; exit 75", REQUEUE_STATUS="1"))
    assert errors == RESUBMITTED + "not requeued: SLURM does not answer\n"
    assert len((tmp_path / "requeued").read_text().splitlines()) > 3


def test_the_ranks_meet_on_the_first_node_of_the_job(job, tmp_path):
    """Variables such as MASTER_ADDR that are set in the submitting shell are ignored."""
    inherited = {"MASTER_ADDR": "elsewhere", "MASTER_PORT": "1", "RANK": "5", "WORLD_SIZE": "8"}
    assert finish(job("exit 0", **inherited)) == ("", 0)
    assert (tmp_path / "environment").read_text() == "10.0.0.1:20007 unset\n"


def test_script_refuses_to_run_outside_a_job():
    done = subprocess.run(
        ["bash", "slurm/pretrain.sbatch"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    message = "error: this is a job script: sbatch slurm/pretrain.sbatch …\n"
    assert (done.returncode, done.stderr) == (2, message)


@pytest.mark.parametrize("script", ["pretrain", "contrastive"])
def test_script_without_config_prints_its_usage(script):
    slurm = {"SLURM_JOB_ID": "1", "SLURM_CPUS_ON_NODE": "1", "VIRTUAL_ENV": sys.prefix}
    done = subprocess.run(
        ["bash", f"slurm/{script}.sbatch"],
        cwd=ROOT, env=os.environ | slurm, capture_output=True, text=True, check=False,
    )  # fmt: skip
    usage = f"sbatch slurm/{script}.sbatch CONFIG [key=value …]"
    assert (done.returncode, done.stderr) == (2, f"error: no config given: {usage}\n")
