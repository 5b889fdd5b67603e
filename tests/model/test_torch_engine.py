"""Modes of the engine: scores that agree, and operators that equal those of PyTorch."""

import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn

from simllm import InputError, SimLLM
from simllm.model import saved_model, torch_engine
from simllm.model.network import attention
from simllm.model.torch_engine import Rows, fast_attention, short_softmax
from tests.conftest import ROOT


@pytest.mark.parametrize(
    ("name", "amx", "avx512", "fast"),
    [
        ("Intel Xeon", True, True, True),
        ("Intel Xeon", False, True, False),
        ("AMD EPYC", False, True, True),
        ("AMD EPYC", False, False, False),
    ],
)
def test_bfloat16_is_fast_only_where_its_instructions_are(monkeypatch, name, amx, avx512, fast):
    monkeypatch.setattr(torch_engine, "can_pack", lambda _: True)
    monkeypatch.setattr(torch_engine.platform, "machine", lambda: "x86_64")
    facts = {"cpu_name": name, "amx_bf16": amx}
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: facts, raising=False)
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: avx512, raising=False)
    assert torch_engine.has_fast_bfloat16.__wrapped__("cpu") == fast


def test_scores_of_all_modes_agree(comments, monkeypatch):
    # In bfloat16 also where that is slower.
    monkeypatch.setattr(torch_engine, "has_fast_bfloat16", lambda _: True)
    plain, exact, fast = (SimLLM(mode=mode) for mode in ("plain", "exact", "fast"))
    candidates, references = comments[:60], comments[1:61]
    expected = plain.score(candidates, references).values
    assert np.abs(exact.score(candidates, references).values - expected).max() < 1e-5
    assert np.abs(fast.score(candidates, references).values - expected).max() < 0.01
    assert "|dtype:bfloat16|" in fast.signature
    with pytest.raises(InputError, match="mode 'quick': expected one of plain, exact, fast"):
        SimLLM(mode="quick")


LENGTHS = [1, 2, 15, 16, 17, 63, 64, 200]


@pytest.mark.parametrize("length", LENGTHS)
def test_softmax_of_rows_of_every_length(length):
    scores = (4 * torch.randn(3, 2, 5, length)).bfloat16()
    scores[1, :, :, length // 2 + 1 :] = torch.finfo(torch.bfloat16).min
    found = short_softmax(scores)
    assert found.dtype == torch.bfloat16
    assert found.shape == scores.shape
    torch.testing.assert_close(found.double(), scores.double().softmax(-1), atol=1e-6, rtol=5e-3)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("function", [torch_engine.matmul_attention, fast_attention])
def test_attention_with_hidden_positions(length, function):
    q, k, v = (torch.randn(2, 3, length, 8) for _ in range(3))
    bias = torch.randn(2, 3, length, length)
    bias[1, :, :, length // 2 + 1 :] = torch.finfo(torch.float32).min
    torch.testing.assert_close(function(q, k, v, bias, 0.0), attention(q, k, v, bias, 0.0))


def broken(*_):
    raise RuntimeError("Could not run this operator with this CPU")


class NoOperators:
    """Stand-in for the oneDNN operators of PyTorch that has none of them."""


@pytest.mark.parametrize(
    "hide",
    [
        lambda patch: patch.setattr(torch.ops, "mkldnn", NoOperators()),
        lambda patch: patch.setattr(torch.ops.mkldnn, "_reorder_linear_weight", broken),
        lambda patch: patch.setattr(torch.ops.mkldnn, "_linear_pointwise", broken),
        lambda patch: patch.setattr(torch.ops.mkldnn, "_linear_pointwise", lambda x, **_: x[..., :16] * 2),
    ],
    ids=["no operators", "no packing", "no product", "other product"],
)
def test_scores_are_equal_without_private_operators(model_folder, comments, monkeypatch, hide):
    pairs = comments[:20], comments[20:40]
    expected = {mode: SimLLM(model_folder, mode=mode).score(*pairs).values for mode in ("exact", "fast")}
    torch_engine.can_pack.cache_clear()
    with monkeypatch.context() as patch:
        hide(patch)
        found = {mode: SimLLM(model_folder, mode=mode).score(*pairs).values for mode in expected}
        assert not any(map(torch_engine.can_pack, (torch.float32, torch.bfloat16)))
    torch_engine.can_pack.cache_clear()
    assert np.abs(found["exact"] - expected["exact"]).max() < 1e-5
    assert np.abs(found["fast"] - expected["fast"]).max() < 0.01


def test_probing_private_operators_leaves_the_random_state_unchanged():
    torch_engine.can_pack.cache_clear()
    state = torch.get_rng_state()
    torch_engine.can_pack(torch.float32)
    assert torch.equal(torch.get_rng_state(), state)


# Scores with two threads; without the hook of the engine, a forked process would wait forever for the second.
IN_WORKERS = """
import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import joblib
import torch

from simllm import SimLLM

texts = [f"opens the file {i} and reads its lines" for i in range(60)]
pairs = texts, texts[::-1]
metric = SimLLM(FOLDER)


def score(fresh):
    scores = (SimLLM(FOLDER) if fresh else metric).score(*pairs)
    return scores.values.tolist(), torch.get_num_threads()


def datasets_score(rows):
    return {"score": metric.score(rows["a"], rows["b"]).values}


if __name__ == "__main__":
    torch.set_num_threads(2)
    expected = metric.score(*pairs).values.tolist()
    CHECK
"""
POOL = """
    with ProcessPoolExecutor(2, multiprocessing.get_context(METHOD)) as pool:
        assert list(pool.map(score, [False, True, False])) == [(expected, THREADS)] * 3
"""
JOBLIB = """
    work = joblib.delayed(score)
    found = joblib.Parallel(2, backend="multiprocessing")(work(fresh) for fresh in (False, True, False))
    assert found == [(expected, 1)] * 3
"""
DATASETS = """
    from datasets import Dataset

    rows = Dataset.from_dict({"a": pairs[0], "b": pairs[1]})
    scored = rows.map(datasets_score, batched=True, batch_size=30, num_proc=2)
    assert scored.num_rows == 60
    assert max(abs(a - b) for a, b in zip(scored["score"], expected)) < 1e-6
"""


def run_program(folder, model_folder, check, method="fork", threads=1, **environment):
    """Run `IN_WORKERS` with one of the checks above, in a process of its own."""
    text = IN_WORKERS.replace("    CHECK", check).replace("FOLDER", repr(str(model_folder)))
    program = folder / "program.py"
    program.write_text(text.replace("METHOD", repr(method)).replace("THREADS", str(threads)))
    inherited = {key: value for key, value in os.environ.items() if key != "OMP_NUM_THREADS"}
    environment = inherited | {"HF_HOME": str(folder), "PYTHONPATH": str(ROOT)} | environment
    subprocess.run([sys.executable, program], env=environment, check=True, timeout=120)


@pytest.mark.slow
def test_forked_workers_score_with_one_thread(model_folder, tmp_path):
    run_program(tmp_path, model_folder, POOL)


@pytest.mark.slow
@pytest.mark.parametrize("check", [JOBLIB, DATASETS], ids=["joblib", "datasets"])
def test_forked_workers_of_libraries_score_with_one_thread(model_folder, tmp_path, check):
    run_program(tmp_path, model_folder, check)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_other_workers_score_with_one_thread_unless_the_user_sets_a_number(model_folder, tmp_path, method):
    run_program(tmp_path, model_folder, POOL, method)
    run_program(tmp_path, model_folder, POOL, method, threads=2, OMP_NUM_THREADS="2")


def test_a_model_that_moves_to_a_gpu_gets_its_batches_and_attention(monkeypatch):
    metric = SimLLM(mode="plain")
    assert metric.engine.batch_tokens == torch_engine.CPU_BATCH
    metric.engine.encoder.to("meta")  # PyTorch's device without data stands for a GPU
    assert metric.engine.batch_tokens == torch_engine.GPU_BATCH
    monkeypatch.setattr(type(metric.engine), "device", torch.device("cuda"))
    assert metric.engine.attention is torch_engine.matmul_attention
    metric.engine.encoder.train()
    assert metric.engine.attention is attention  # the only one with dropout


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_forked_processes_refuse_a_model_on_a_gpu(model_folder):
    # PyTorch's device without data stands for a GPU: nothing is computed before the check.
    engine = torch_engine.TorchEngine(saved_model.load(model_folder).encoder.to("meta"))
    child = os.fork()
    if child == 0:
        try:
            engine(torch.zeros(1, 1, dtype=torch.long), torch.ones(1, 1, dtype=torch.bool))
        except InputError as error:
            os._exit(7 if "which a forked process cannot use" in str(error) else 8)
        os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


EMULATED = {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2"}  # a processor without bfloat16


def test_fast_mode_is_float32_where_bfloat16_is_emulated(model_folder):
    code = f"""
import warnings
from simllm import SimLLM

metrics = []
with warnings.catch_warnings(record=True) as caught:
    for _ in range(3):
        metrics.append(SimLLM({str(model_folder)!r}, mode="fast"))
assert [str(one.message)[:9] for one in caught] == ["mode fast"], caught
exact = SimLLM({str(model_folder)!r})
assert metrics[0].signature == exact.signature
texts = ["adds two lists", "opens the file"], ["combines 2 arrays", "closes the file"]
assert (metrics[0].score(*texts).values == exact.score(*texts).values).all()
"""
    command = [sys.executable, "-W", "default", "-c", code]
    subprocess.run(command, env=os.environ | EMULATED, check=True, timeout=120)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_windows_of_several_batches_are_joined_and_padded(dtype):
    random = np.random.default_rng(0)
    sources = [torch.randn(40, 3).to(dtype) for _ in range(3)]

    def window():
        first, length = random.integers(30), random.integers(1, 10)
        return Rows(sources[random.integers(3)], int(first), int(length))

    texts = [[window() for _ in range(random.integers(1, 4))] for _ in range(20)]
    joined = [torch.cat([w.source[w.first : w.first + w.length] for w in windows]) for windows in texts]
    padded, mask = torch_engine._padded(texts)
    assert torch.equal(padded, nn.utils.rnn.pad_sequence(joined, batch_first=True))
    assert mask.sum(1).tolist() == [len(text) for text in joined]
    assert torch.equal(mask, mask.sort(1, descending=True)[0])  # the padding comes last
