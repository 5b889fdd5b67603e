"""Scores with the linear layers of oneDNN, and on machines where oneDNN does not work."""

import numpy as np
import pytest
import torch

from simllm import SimLLM
from simllm.model import engines


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
        lambda patch: patch.setattr(torch.ops.mkldnn, "_linear_pointwise", lambda x, *_: x[..., :16] * 2),
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
