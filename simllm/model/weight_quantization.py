"""Rounding of weights to 8 bits, in blocks of 32 weights.

A block is stored as 32 8-bit integers and one scale. A weight is its integer times the scale of its block.

The weights of a released model are rounded in this way. The model folder stores the rounded weights as
float16. The export for browsers stores the integers and scales, which takes half the space. The export does
not round the weights again, so a browser computes the same scores as Python.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from simllm.array_types import Floats32

BLOCK = 32  # weights that have the same scale


def to_blocks(values: Floats32, columns: int) -> tuple[NDArray[np.int8], NDArray[np.float16]]:
    """Round weights to 8 bits: store each block of 32 weights as 32 integers and one common scale.

    A rounded weight is its integer times the scale of its block.

    Args:
        values: The weights, of any shape. They are read as a flat array, row by row. Their number must be a
            multiple of 32 * `columns`.
        columns: Either 1 or the number of columns of the weight matrix. If it is 1, a block is 32 consecutive
            weights in one row. If it is the number of columns, a block is 32 consecutive weights in one
            column.

    Returns:
        (n, 32, columns) integers from -127 to 127, and (n, 1, columns) scales. n is the number of weights
        divided by 32 * `columns`. `integers[i, :, j]` are the integers of one block, and `scales[i, 0, j]` is
        its scale.
    """
    blocks = values.reshape(-1, BLOCK, columns)
    scales = (np.abs(blocks).max(1, keepdims=True) / 127).astype(np.float16)
    scales = np.maximum(scales, np.finfo(np.float16).tiny)
    return np.rint(blocks / scales).clip(-127, 127).astype(np.int8), scales


def are_blocks(values: Floats32, columns: int) -> bool:
    """Return whether `to_blocks`, which rounds weights to 8 bits, would leave the given weights unchanged.

    This is the case if `to_blocks` has already rounded the weights. Differences within the precision of
    float16 are ignored. The result is False if the number of weights is not a multiple of 32 * `columns`.

    Args:
        values: The weights, of any shape.
        columns: Either 1 or the number of columns of the weight matrix. A block is 32 weights with a common
            scale. If `columns` is 1, a block is 32 consecutive weights in one row. If it is the number of
            columns, a block is 32 consecutive weights in one column.
    """
    if values.size % (BLOCK * columns):
        return False
    numbers, scales = to_blocks(values, columns)
    rounded = (numbers * scales.astype(np.float32)).reshape(values.shape)
    # A weight and its scale are each rounded to float16, with a relative error of at most 2**-11.
    return bool((np.abs(rounded - values) <= 2**-9 * np.abs(values)).all())


@torch.no_grad()
def round_to_blocks(module: nn.Module) -> None:
    """Round the matrices and embedding tables of a network to 8-bit precision, in place.

    A rounded weight is an 8-bit integer times a scale, which 32 consecutive weights in a row share. It is
    still stored as a float. A matrix or table stays unchanged if its row length is not a multiple of 32.

    Args:
        module: The network.
    """
    for part in module.modules():
        if isinstance(part, nn.Linear | nn.Embedding) and not part.weight.shape[1] % BLOCK:
            numbers, scales = to_blocks(part.weight.numpy(), 1)
            rounded = torch.from_numpy(numbers * scales.astype(np.float32))
            part.weight.copy_(rounded.reshape(part.weight.shape))
