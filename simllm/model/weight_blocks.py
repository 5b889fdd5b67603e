"""Storage of weights in 8 bits: 32 weights, called a block, are stored as 32 8-bit integers and one scale.

The weights of a released model are rounded in this way, but stored as float16 in the model folder. The export
for browsers stores them in 8 bits, which takes half the space and loses nothing more. Therefore the scores in
a browser are those of Python.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

BLOCK = 32  # weights that have the same scale
Floats = NDArray[np.float32]


def to_blocks(values: Floats, columns: int) -> tuple[NDArray[np.int8], NDArray[np.float16]]:
    """Round weights to 8 bits, in blocks of 32 weights that have the same scale.

    Args:
        values: The weights, of any shape. Their number must be a multiple of 32 * `columns`.
        columns: The step from one weight of a block to the next one in the flattened array. It is 1 if a
            block is a part of a row. If a block is a part of a column, it is the number of columns.

    Returns:
        (n, 32, columns) whole numbers from -127 to 127; and (n, 1, columns) scales. n is the number of
        weights divided by 32 * `columns`. A rounded weight is the product of its number and its scale.
    """
    blocks = values.reshape(-1, BLOCK, columns)
    scales = (np.abs(blocks).max(1, keepdims=True) / 127).astype(np.float16)
    scales = np.maximum(scales, np.finfo(np.float16).tiny)
    return np.rint(blocks / scales).clip(-127, 127).astype(np.int8), scales


def are_blocks(values: Floats, columns: int) -> bool:
    """Return whether weights are already rounded to 8 bits, so that storage in 8 bits loses nothing.

    Differences within the precision of float16 are ignored.

    Args:
        values: The weights, of any shape.
        columns: The step from one weight of a block to the next one in the flattened array (see
            `to_blocks`).
    """
    if values.size % (BLOCK * columns):
        return False
    numbers, scales = to_blocks(values, columns)
    rounded = (numbers * scales.astype(np.float32)).reshape(values.shape)
    # A weight and its scale are each rounded to float16, with a relative error of at most 2**-11.
    return bool((np.abs(rounded - values) <= 2**-9 * np.abs(values)).all())


@torch.no_grad()
def round_to_blocks(module: nn.Module) -> None:
    """Round the matrices and embedding tables of a network to 8 bits, in place.

    A block has 32 consecutive numbers in a row of a matrix or table. Matrices and tables whose rows have a
    length that is not a multiple of 32 stay unchanged.

    Args:
        module: The network.
    """
    for part in module.modules():
        if isinstance(part, nn.Linear | nn.Embedding) and not part.weight.shape[1] % BLOCK:
            numbers, scales = to_blocks(part.weight.numpy(), 1)
            rounded = torch.from_numpy(numbers * scales.astype(np.float32))
            part.weight.copy_(rounded.reshape(part.weight.shape))
