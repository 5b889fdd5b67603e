"""Storage of weights in 8 bits: blocks of 32 numbers share a scale.

The weights of a released model are rounded to such blocks once, and stored as float16. Then an 8-bit copy of
them, half as large, loses nothing more, and a browser that reads the copy gets the scores of Python.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

BLOCK = 32  # numbers that share a scale
Floats = NDArray[np.float32]


def to_blocks(values: Floats, columns: int) -> tuple[NDArray[np.int8], NDArray[np.float16]]:
    """Round weights to 8 bits.

    Args:
        values: The weights, of any shape. 32 * `columns` must divide their number.
        columns: Number of neighbouring weights that belong to different blocks: 1 for blocks along the last
            axis of the array, or the size of the last axis for blocks along the axis before.

    Returns:
        (n, 32, columns) whole numbers from -127 to 127, and the (n, 1, columns) scales by which they are
        multiplied.
    """
    blocks = values.reshape(-1, BLOCK, columns)
    scales = (np.abs(blocks).max(1, keepdims=True) / 127).astype(np.float16)
    scales = np.maximum(scales, np.finfo(np.float16).tiny)
    return np.rint(blocks / scales).clip(-127, 127).astype(np.int8), scales


def are_blocks(values: Floats, columns: int) -> bool:
    """Return whether weights are already rounded to 8 bits, so that 8 bits store them as well as float16.

    Args:
        values: The weights, of any shape.
        columns: As in `to_blocks`.
    """
    if values.size % (BLOCK * columns):
        return False
    numbers, scales = to_blocks(values, columns)
    rounded = (numbers * scales.astype(np.float32)).reshape(values.shape)
    # A weight and its scale are each rounded to float16, whose numbers are 2**-11 apart at most, relatively.
    return bool((np.abs(rounded - values) <= 2**-9 * np.abs(values)).all())


@torch.no_grad()
def round_to_blocks(module: nn.Module) -> None:
    """Round the matrices and embedding tables of a network to 8 bits, in place.

    Blocks run along the inputs of a linear layer, and along the vectors of a table. Matrices whose sizes
    blocks do not divide stay as they are.

    Args:
        module: The network.
    """
    for part in module.modules():
        if isinstance(part, nn.Linear | nn.Embedding) and not part.weight.shape[1] % BLOCK:
            numbers, scales = to_blocks(part.weight.numpy(), 1)
            rounded = torch.from_numpy(numbers * scales.astype(np.float32))
            part.weight.copy_(rounded.reshape(part.weight.shape))
