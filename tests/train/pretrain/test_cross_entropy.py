import pytest
import torch
from torch.nn import functional as F

from train.pretrain import language_model


@pytest.fixture(params=[1, 37, 1000])
def inputs(request, monkeypatch):
    monkeypatch.setitem(language_model._LOGITS, "cpu", request.param * 50)  # rows per chunk
    generator = torch.Generator().manual_seed(0)
    hidden, weight, bias = (
        torch.randn(*shape, generator=generator, requires_grad=True) for shape in ((90, 16), (50, 16), (50,))
    )
    targets = torch.randint(0, 50, (90,), generator=generator)
    targets[:7] = 1
    return hidden, weight, bias, targets


def plain(hidden, weight, bias, targets):
    return F.cross_entropy(F.linear(hidden, weight, bias).float(), targets, ignore_index=1, reduction="sum")


def ours(hidden, weight, bias, targets):
    return language_model.linear_cross_entropy(hidden, weight, bias, targets, 1)


def test_loss_and_gradients_equal_plain_cross_entropy(inputs):
    results = []
    for loss_of in (plain, ours):
        loss = loss_of(*inputs)
        results.append([loss.detach(), *torch.autograd.grad(loss / 83, inputs[:3])])
    for expected, actual in zip(*results, strict=True):
        assert (actual - expected).abs().max() <= 1e-6 * max(1, expected.abs().max())


def test_ignored_rows_add_no_loss_and_no_gradient(inputs):
    hidden, *rest = inputs
    (gradient,) = torch.autograd.grad(ours(*inputs), [hidden])
    assert not gradient[:7].any()
    targets = rest[2]
    assert torch.equal(gradient.any(1), targets != 1)
    fewer = ours(hidden[targets != 1], *rest[:2], targets[targets != 1])
    assert ours(*inputs).item() == pytest.approx(fewer.item(), rel=1e-6)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_under_autocast(inputs, dtype):
    expected = torch.autograd.grad(plain(*inputs), inputs[:3])
    with torch.autocast("cpu", dtype):
        loss = ours(*inputs)
    assert loss.dtype == torch.float32
    for one, other in zip(torch.autograd.grad(loss, inputs[:3]), expected, strict=True):
        assert one.dtype == torch.float32
        bound = 2e-2 if dtype == torch.bfloat16 else 1e-5  # float16 is computed in float32
        assert (one - other).abs().max() < bound * other.abs().max()


def test_no_memory_is_kept_without_gradients(inputs):
    with torch.no_grad():
        loss = ours(*inputs)
    assert not loss.requires_grad
    assert loss.item() == pytest.approx(plain(*inputs).item(), rel=1e-6)
