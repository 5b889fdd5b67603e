"""Weights in 8 bits: how exact they are, and that rounding twice changes nothing."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from simllm.model.saved_model import BLOCK, are_blocks, round_to_blocks, to_blocks


def weights(seed, rows, columns, spread):
    random = np.random.default_rng(seed)
    values = random.normal(size=(rows * BLOCK, columns)) * 10.0 ** random.uniform(-spread, 0, (1, columns))
    return values.astype(np.float32)


@given(st.integers(0, 2**32), st.integers(1, 4), st.integers(1, 40), st.floats(0, 4))
def test_rounding_error_is_at_most_half_a_step_of_the_block(seed, rows, columns, spread):
    values = weights(seed, rows, columns, spread)
    numbers, scales = to_blocks(values, columns)
    error = np.abs((numbers * scales.astype(np.float32)).reshape(values.shape) - values)
    largest = np.abs(values.reshape(rows, BLOCK, columns)).max(1, keepdims=True)
    # Half a step, the rounding of the scale to float16, and the smallest float16 for tiny weights.
    assert (error.reshape(rows, BLOCK, columns) <= largest * (0.5 / 127 + 2**-10) + 127 * 6.2e-5).all()


def test_rounded_weights_that_were_stored_as_float16_are_recognized_and_kept():
    torch.manual_seed(0)
    network = nn.Sequential(nn.Embedding(50, 64), nn.Linear(64, 96), nn.LayerNorm(96))
    table, linear = network[0].weight, network[1].weight
    assert not are_blocks(linear.detach().numpy().T, 96)
    bias = network[1].bias.clone()
    round_to_blocks(network)
    stored = [weight.detach().half().float().numpy() for weight in (table, linear)]
    assert are_blocks(stored[0], 1)
    # ONNX has the matrix of a linear layer turned round: inputs are the rows.
    turned = np.ascontiguousarray(stored[1].T)
    assert are_blocks(turned, 96)
    numbers, scales = to_blocks(turned, 96)
    again = (numbers * scales.astype(np.float32)).reshape(turned.shape)
    np.testing.assert_allclose(again, turned, rtol=2**-9)
    assert torch.equal(bias, network[1].bias)


def test_sizes_that_blocks_do_not_divide_are_left_alone():
    layer = nn.Linear(BLOCK + 1, 4)
    before = layer.weight.clone()
    round_to_blocks(layer)
    assert torch.equal(before, layer.weight)
    assert not are_blocks(np.zeros((3, 5), np.float32), 1)
