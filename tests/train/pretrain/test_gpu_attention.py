"""The attention of GPUs, without a GPU: Triton can interpret its kernels, and compile them for any GPU."""

import os
import re
import subprocess
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import get_context
from pathlib import Path

import pytest
import torch
import torch._dynamo.utils
from packaging.version import Version

from simllm.model.config import ModelConfig
from simllm.model.network import Encoder
from tests.train.pretrain.test_attention import batch_of
from train.pretrain.attention import grouped_attention
from train.pretrain.language_model import PermutedLanguageModel
from train.pretrain.permutation import by_position, pad_streams

pytestmark = pytest.mark.slow
LENGTHS = [5, 5, 30, 9, 64, 12, 90, 7]  # tiles with many texts, and texts with several tiles


def require_triton(lowest):
    """Skip a test without the package triton."""
    try:
        installed = version("triton")
    except PackageNotFoundError:
        pytest.skip("the package triton, which interprets and compiles the kernels, is not installed")
    if Version(installed) < Version(lowest):
        pytest.skip(f"needs triton {lowest}; {installed} is installed")


@pytest.fixture(scope="module")
def interpreted():
    """Return a function that calls functions in a process in which Triton interprets kernels."""
    require_triton("3.7")  # older interpreters fail at loops, with numpy 2.4
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        # Triton reads the variable when it is imported; in this process, other tests may have done that.
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("TRITON_INTERPRET", "1")
            process.submit(os.getpid).result()  # starts the process
        yield lambda function, *args: process.submit(function, *args).result()


def a_model(heads=2, dropout=0.0):
    torch.manual_seed(0)
    config = ModelConfig(
        vocab_size=1000, hidden_size=48, num_hidden_layers=1, num_attention_heads=heads, intermediate_size=64,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=dropout, initializer_range=0.2,
        max_position_embeddings=130,
    )  # fmt: skip
    return PermutedLanguageModel(Encoder(config))


def fuse(model, batch, step=64):
    """Give a model the attention of GPUs; return the batch as that attention needs it."""
    from train.pretrain.gpu_attention import fused_attention

    model.make_attention = fused_attention
    return pad_streams(by_position(batch), step)


def gradients(model, batch):
    model.zero_grad()
    loss = model(batch) / batch.predicted
    loss.backward()
    return {"loss": loss.detach()} | {name: p.grad.clone() for name, p in model.named_parameters()}


def largest_difference(heads, lengths, masked=False):
    """Return the largest difference of loss and gradients from those of the attention of CPUs."""
    model, batch = a_model(heads), batch_of(lengths)
    batch = batch.masked() if masked else batch
    model.make_attention = grouped_attention
    expected = gradients(model, batch)
    found = gradients(model, fuse(model, batch))
    assert expected["encoder.relative_bias.table.weight"].abs().max() > 1e-3
    return max(float((found[name] - values).abs().max()) for name, values in expected.items())


@pytest.mark.parametrize(
    ("heads", "lengths", "masked"),
    [
        (3, LENGTHS, False),
        (2, LENGTHS, True),  # heads of 24 numbers, which is no power of 2
        (3, [56], False),  # the padding of the query stream sees nothing
    ],
)
def test_results_are_those_of_the_attention_of_cpus(interpreted, heads, lengths, masked):
    assert interpreted(largest_difference, heads, lengths, masked) < 2e-6


def errors_in_float16():
    """Return the relative errors of outputs and gradients of queries, keys and values in float16."""
    from train.pretrain.gpu_attention import fused_attention

    model = a_model(3)
    batch = pad_streams(by_position(batch_of(LENGTHS)), 64)
    rows, columns, results = len(batch.texts), len(batch.prediction_turns), []
    real = (batch.texts < len(LENGTHS))[:, None]
    for dtype in (torch.float32, torch.float16):
        torch.manual_seed(0)
        inputs = [torch.randn(1, 3, size, 16).to(dtype).requires_grad_() for size in (rows, columns, columns)]
        out = fused_attention(batch, model.encoder.relative_bias)(*inputs) * real
        out.float().square().sum().backward()
        results.append([out.detach().float(), *(x.grad.float() for x in inputs)])
    return [float((half - exact).norm() / exact.norm()) for exact, half in zip(*results, strict=True)]


def test_float16_is_precise(interpreted):  # the interpreter computes no products of bfloat16
    assert max(interpreted(errors_in_float16)) < 2e-3


def slopes_with_dropout(name):
    """Return the slope of the loss for one parameter, by its gradient and by differences; and losses."""
    model = a_model(3, dropout=0.3)
    batch = fuse(model, batch_of([9, 90]))

    def loss():
        torch.manual_seed(1)  # drops the same weights each time
        return model(batch) / batch.predicted

    def loss_at(values):
        parameter.copy_(values)
        return float(loss())

    loss().backward()
    parameter = model.get_parameter(name)
    step = parameter.grad / parameter.grad.norm()
    with torch.no_grad():
        before = parameter.clone()
        ahead, behind = (loss_at(before + x * step) for x in (0.02, -0.02))
        parameter.copy_(before)
        torch.manual_seed(2)
        other = float(model(batch) / batch.predicted)
        model.eval()
        without = float(model(batch) / batch.predicted)
    return float(parameter.grad.norm()), (ahead - behind) / 0.04, (ahead + behind) / 2, other, without


@pytest.mark.parametrize(
    "part", ["relative_bias.table", "layers.0.attention.query", "layers.0.attention.value"]
)
def test_dropout_is_the_same_forward_and_backward(interpreted, part):
    slope, measured, loss, other_seed, without = interpreted(slopes_with_dropout, f"encoder.{part}.weight")
    assert measured == pytest.approx(slope, rel=0.01)
    assert len({loss, other_seed, without}) == 3


def share_kept(dropout):
    """Return the mean and the share of zeros of attention weights, times their number, with dropout."""
    from train.pretrain.gpu_attention import fused_attention

    batch = pad_streams(by_position(batch_of([60] * 4)), 64)
    model = a_model(3)
    torch.nn.init.zeros_(model.encoder.relative_bias.table.weight)
    rows, columns = len(batch.texts), len(batch.prediction_turns)
    # Equal logits; the values of a text's first 16 positions tell their weights apart.
    v = torch.nn.functional.one_hot(batch.positions[:columns], 60)[None, None, :, :16].float()
    q, k = torch.zeros(1, 1, rows, 16), torch.zeros(1, 1, columns, 16)
    attend = fused_attention(batch, model.encoder.relative_bias, dropout)
    weights = attend(*(x.repeat(1, 3, 1, 1) for x in (q, k, v)))[:, :, batch.texts < 4] * 60
    return float(weights.mean()), float((weights == 0).float().mean())


def test_dropout_keeps_the_mean(interpreted):
    mean, zeros = interpreted(share_kept, 0.25)
    assert mean == pytest.approx(1, abs=0.03)
    assert zeros == pytest.approx(0.25, abs=0.03)


def count_graphs():
    """Count the graphs of compiled layers in updates with different batches."""
    model = a_model(3, dropout=0.1)
    for layer in model.encoder.layers:
        layer.compile(dynamic=False, fullgraph=True, backend="aot_eager")
    for seed in range(3):
        gradients(model, fuse(model, batch_of([5, 30, 9, 12], seed), 128))
    return torch._dynamo.utils.counters["stats"]["unique_graphs"]


def test_one_compilation_without_graph_breaks_serves_all_batches(interpreted):
    assert interpreted(count_graphs) == 1


POINTERS = {
    "*i32": {"positions", "numbers", "starts", "widths", "ranges", "bounds"},
    "*fp32": {"bias", "lse", "to_bias", "deltas"},
    "*i64": {"seed"},
    "fp32": {"scale", "rate"},
    "i32": {"longest", "heads"},
}


def compile_for_h100(kernel, precision, dropout):
    """Compile a kernel for `configs/base.yaml`; return registers, stack and shared memory, and the code."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from train.pretrain import gpu_attention

    function = getattr(gpu_attention, kernel)
    constants = {"D": 64, "BLOCK": 64, "STEPS": 32, "DROPOUT": dropout}
    constants = {name: value for name, value in constants.items() if name in function.arg_names}
    kinds = {name: kind for kind, names in POINTERS.items() for name in names}
    types = {name: kinds.get(name, f"*{precision}") for name in function.arg_names}
    types |= dict.fromkeys(constants, "constexpr")
    aligned = [["tt.divisibility", 16]]
    aligned = {(i,): aligned for i, name in enumerate(function.arg_names) if types[name].startswith("*")}
    options = {"num_warps": gpu_attention.WARPS}
    options["num_stages"] = gpu_attention.STAGES[4 if precision == "fp32" else 2]
    source = ASTSource(function, types, constants, aligned)
    made = triton.compile(source, GPUTarget("cuda", 90, 32), options)
    ptxas = Path(triton.__file__).parent / "backends/nvidia/bin/ptxas"
    command = [ptxas, "-v", "-arch=sm_90a", "-o", os.devnull, "-"]
    told = subprocess.run(command, input=made.asm["ptx"], capture_output=True, text=True, check=True).stderr
    registers, stack = (
        int(re.search(rf"(\d+) {name}", told)[1]) for name in ("registers", "bytes stack frame")
    )
    return registers, stack, made.metadata.shared, made.asm["ptx"]


@pytest.mark.parametrize(
    ("kernel", "precision", "dropout", "largest_stack"),
    [
        ("_forward", "bf16", False, 0),
        ("_forward", "bf16", True, 0),
        ("_backward_rows", "bf16", False, 0),
        ("_backward_rows", "bf16", True, 64),  # random numbers take registers, too
        ("_backward_columns", "bf16", False, 0),
        ("_backward_columns", "bf16", True, 64),
        ("_backward_columns", "fp32", False, 256),
    ],
)
def test_machine_code_needs_no_atomics_and_few_resources(kernel, precision, dropout, largest_stack):
    require_triton("3.6")
    with ProcessPoolExecutor(1, get_context("spawn")) as process:  # not the process that interprets
        compiled = process.submit(compile_for_h100, kernel, precision, dropout)
        registers, stack, shared, code = compiled.result()
    assert not re.search(r"\b(atom|red)\.", code)
    assert "wgmma" in code  # the tensor cores of an H100
    assert stack <= largest_stack  # holds what does not fit into registers
    # Two programs fit on a multiprocessor, and one on smaller GPUs.
    assert 2 * 128 * registers <= 65_536
    assert shared <= 99 * 1024
