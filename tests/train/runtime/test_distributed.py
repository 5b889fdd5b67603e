"""Training with several processes, and the variables of the launchers that start them."""

import os
import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from simllm.errors import InputError
from tests.conftest import ROOT
from train.pretrain.config import PretrainConfig
from train.pretrain.task import PretrainingTask
from train.runtime.config import load
from train.runtime.distributed import World, join_processes
from train.runtime.gradients import GradientExchange
from train.runtime.loop import set_up_encoders
from train.tokens.shards import Shards

pytestmark = pytest.mark.slow

OPTIONS = [
    "out=none", "model.hidden_dropout_prob=0", "model.attention_probs_dropout_prob=0", "model.vocab_size=600",
    "model.hidden_size=32", "model.intermediate_size=64", "test_texts=300",
]  # fmt: skip


def shards():
    generator = torch.Generator().manual_seed(0)
    lengths = torch.randint(4, 65, (1500,), generator=generator).numpy().astype("int64")
    ids = torch.randint(5, 600, (int(lengths.sum()),), generator=generator)
    return Shards([ids.numpy()], lengths)


def update(world, batch_tokens, accumulation, packing, *more):
    """Compute the gradients of one training update (update number 2), without changing the weights.

    Each process of `world` calls this function with the same arguments.

    Returns:
        A dict from the names of the parameters to their gradients, and from "loss" to the loss of the update,
        all summed over the processes. It also has the "perplexity" on the test texts.
    """
    sizes = [f"batch_tokens={batch_tokens}", f"accumulation={accumulation}", f"packing={packing}"]
    config = load(PretrainConfig, ROOT / "configs" / "debug.yaml", [*OPTIONS, *sizes, *more])
    task = PretrainingTask(config, shards(), shards(), world)
    set_up_encoders(task.model, config)
    loss = 0.0
    exchange, parts = GradientExchange(task.model, world), task.losses(2)
    for number, compute in enumerate(parts, 1):
        part, _ = compute()
        exchange.backward(part, is_last=number == len(parts))
        loss += part.item()
    perplexity, _ = task.evaluate()
    gradients = {name: p.grad for name, p in task.model.named_parameters()}
    return gradients | {
        "loss": torch.tensor(world.sum_values(loss)),
        "perplexity": torch.tensor([perplexity]),
    }


@pytest.fixture(scope="module", params=["documents", "blocks"])
def whole(request):
    """Return the packing, and the loss and gradients of an update in one batch and one process."""
    return request.param, update(World(), 8192, 1, request.param)


def assert_equal(actual, expected):
    assert actual.keys() == expected.keys()
    for name, values in expected.items():
        scale = max(1.0, float(values.abs().max()))
        assert (actual[name] - values).abs().max() <= 1e-6 * scale, name


def test_dropout_depends_on_the_layout_of_the_batches():
    """The masks belong to a batch, not to a text; docs/clusters.md says so."""
    gradients = []
    for batch_tokens, accumulation in ((8192, 1), (8192, 1), (1024, 8)):
        torch.manual_seed(5)
        options = ["model.hidden_dropout_prob=0.1"]
        gradients.append(update(World(), batch_tokens, accumulation, "documents", *options))
    one, again, parts = (
        values["model.embeddings.token.weight"]
        if "model.embeddings.token.weight" in values
        else next(iter(values.values()))
        for values in gradients
    )
    assert (one == again).all()
    assert (one - parts).abs().max() > 1e-5
    assert parts.norm() == pytest.approx(float(one.norm()), rel=0.2)


def test_update_in_several_parts_is_the_same(whole):
    packing, expected = whole
    assert expected["loss"] > 5
    assert_equal(update(World(), 1024, 8, packing), expected)
    assert_equal(update(World(), 2048, 4, packing), expected)


def test_more_processes_than_batches():
    """If an update has fewer batches than processes, some processes have no batch, but no text is lost."""
    world = World()
    sizes = ["batch_tokens=64", "accumulation=1", "packing=documents"]
    config = load(PretrainConfig, ROOT / "configs" / "debug.yaml", [*OPTIONS, *sizes])
    tasks = [
        PretrainingTask(config, shards(), shards(), replace(world, rank=rank, size=3)) for rank in range(3)
    ]
    alone, idle = PretrainingTask(config, shards(), shards(), world), 0
    for update in range(12):
        counts = [[part()[1] for part in task.losses(update)] for task in tasks]
        assert sum(map(sum, counts)) == sum(part()[1] for part in alone.losses(update))
        idle += sum(not own for own in counts)
    assert idle


def test_gradient_checkpointing_changes_no_gradient(whole):
    packing, expected = whole
    assert_equal(update(World(), 8192, 1, packing, "gradient_checkpointing=true"), expected)


@pytest.mark.parametrize("processes", [3, 2])
def test_several_processes_compute_the_same_update(run, whole, processes, tmp_path):
    packing, expected = whole
    ranks = run.ranks(processes, "tests.train.runtime.test_distributed", packing, tmp_path)
    assert [rank.finish() for rank in ranks] == [0] * processes, ranks[0].errors
    for rank in range(processes):
        found = load_file(tmp_path / f"{rank}.safetensors")
        assert found.pop("used").eq(processes - 1).all()
        assert found.pop("unused").eq(0).all()
        assert_equal(found, expected)


@pytest.mark.parametrize("whole", ["documents"], indirect=True)
def test_by_torchrun(whole, tmp_path):
    packing, expected = whole
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    subprocess.run(
        [*command, __file__, packing, str(tmp_path)],
        cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}, check=True, timeout=300,
    )  # fmt: skip
    for rank in range(2):
        found = load_file(tmp_path / f"{rank}.safetensors")
        assert_equal({name: found[name] for name in expected}, expected)


def one_process_without_a_loss(world):
    """Exchange gradients although the first process has no loss.

    Return two gradients: of a parameter that only the other processes use, and of a parameter that no process
    uses.
    """
    model = nn.Linear(3, 2)
    exchange = GradientExchange(model, world)
    loss = exchange.no_loss()[0] if world.is_first else model.weight.sum()
    exchange.backward(loss, is_last=True)
    return model.weight.grad, model.bias.grad


if __name__ == "__main__":  # entry point of one of several processes
    from train.runtime.distributed import join_processes

    with join_processes() as world:
        result = update(world, 2048, 4, sys.argv[1])
        result["used"], result["unused"] = one_process_without_a_loss(world)
        save_file({k: v.contiguous() for k, v in result.items()}, f"{sys.argv[2]}/{world.rank}.safetensors")


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
