"""Environment variables of launchers; see test_distributed for torchrun, and tests/slurm for srun."""

import os
import subprocess
import sys

import pytest

from simllm.errors import InputError
from tests.conftest import ROOT
from train.runtime.distributed import join_processes


@pytest.fixture
def environment(monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    return lambda **more: [monkeypatch.setenv(name, value) for name, value in more.items()]


def message():
    with pytest.raises(InputError) as error, join_processes():
        pass
    return str(error.value)


def test_engine_that_does_not_fit_is_refused(environment):
    environment(ACCELERATE_USE_FSDP="true")
    assert message() == "accelerate: FSDP is not supported; set `sharding: true` in the configuration"
    environment(ACCELERATE_USE_FSDP="false", ACCELERATE_USE_DEEPSPEED="true")
    assert message() == "accelerate: DEEPSPEED is not supported"


def test_several_processes_without_an_address_are_refused(environment):
    environment(RANK="0", WORLD_SIZE="2", LOCAL_RANK="0", MASTER_PORT="1")
    assert message() == "2 processes, but MASTER_ADDR not set in the environment"


@pytest.mark.parametrize(
    ("rank", "expected"),
    [("x", "RANK=x: expected a whole number"), ("5", "RANK=5: expected less than WORLD_SIZE=2")],
)
def test_a_wrong_rank_is_refused_at_once(environment, rank, expected):
    environment(RANK=rank, WORLD_SIZE="2", LOCAL_RANK="0", MASTER_ADDR="127.0.0.1", MASTER_PORT="1")
    assert message() == expected


def test_one_process_needs_no_address(environment):
    environment(RANK="0", WORLD_SIZE="1", LOCAL_RANK="0")
    with join_processes() as world:
        assert (world.rank, world.size) == (0, 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("processes", "reason"),
    [(1, ""), (2, "`accelerate launch` starts one process only on CPUs; use torchrun")],
)
def test_accelerate_launch_on_cpus(processes, reason):
    """Several processes are refused, because `accelerate launch` would silently start only one on CPUs."""
    launcher = [sys.executable, "-m", "accelerate.commands.launch", "--cpu", f"--num_processes={processes}"]
    launcher += ["--num_machines=1", "--mixed_precision=no", "--dynamo_backend=no"]
    done = subprocess.run(
        [*launcher, "-m", "train.pretrain", "configs/debug.yaml", "--dry-run"],
        cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert (done.returncode == 0) is not bool(reason), done.stderr
    assert reason in done.stderr
