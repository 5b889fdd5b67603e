"""The functions for fast scoring on a CPU give the same results as PyTorch's own functions."""

import pytest
import torch

from simllm.model.encoder import attention
from simllm.model.engines import fast_attention, short_softmax

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
