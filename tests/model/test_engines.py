"""Modes of the engine: scores that agree, and operators that equal those of PyTorch."""

import numpy as np
import pytest
import torch

from simllm import InputError, SimLLM
from simllm.model import engines
from simllm.model.engines import fast_attention, short_softmax
from simllm.model.network import attention


def test_scores_of_all_modes_agree(comments):
    plain, exact, fast = (SimLLM(mode=mode) for mode in ("plain", "exact", "fast"))
    candidates, references = comments[:150], comments[1:151]
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
def test_attention_with_hidden_positions(length):
    q, k, v = (torch.randn(2, 3, length, 8) for _ in range(3))
    bias = torch.randn(2, 3, length, length)
    bias[1, :, :, length // 2 + 1 :] = torch.finfo(torch.float32).min
    torch.testing.assert_close(fast_attention(q, k, v, bias, 0.0), attention(q, k, v, bias, 0.0))


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
    engines.can_pack.cache_clear()
    with monkeypatch.context() as patch:
        hide(patch)
        found = {mode: SimLLM(model_folder, mode=mode).score(*pairs).values for mode in expected}
        assert not any(map(engines.can_pack, (torch.float32, torch.bfloat16)))
    engines.can_pack.cache_clear()
    assert np.abs(found["exact"] - expected["exact"]).max() < 1e-5
    assert np.abs(found["fast"] - expected["fast"]).max() < 0.01


def test_probing_private_operators_leaves_the_random_state_unchanged():
    engines.can_pack.cache_clear()
    state = torch.get_rng_state()
    engines.can_pack(torch.float32)
    assert torch.equal(torch.get_rng_state(), state)
