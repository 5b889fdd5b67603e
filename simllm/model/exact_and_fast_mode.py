"""Three modes of computing similarity scores: `exact`, `fast` and `plain`.

The mode `exact` uses a float32 copy of the encoder, and `fast` a bfloat16 copy. Both copies are prepared for
fast inference. The mode `plain` uses the encoder itself, in float32. If training changes the weights of the
encoder, later scores in this mode use the new weights.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor, nn

from simllm.errors import InputError
from simllm.model.encoder import Encoder, attention
from simllm.model.fast_attention import fast_attention
from simllm.model.onednn_linear_layers import packed_layers
from simllm.model.token_batches import largest_batch

Module = TypeVar("Module", bound=nn.Module)

# plain: the encoder itself, not a copy, so that the weights may change in training
# exact: a copy in float32, packed for the CPU; fast: a copy in bfloat16, packed for the CPU
MODES = {"plain": torch.float32, "exact": torch.float32, "fast": torch.bfloat16}


@dataclass(frozen=True)
class Engine:
    """An encoder that is ready for scoring, together with the attention function that it uses.

    Attributes:
        encoder: The encoder.
        attention: The function that computes the encoder's attention.
    """

    encoder: Encoder
    attention: Callable[..., Tensor] = attention

    @property
    def device(self) -> torch.device:
        """The torch device that holds the encoder."""
        return self.encoder.device

    @property
    def batch_tokens(self) -> int:
        """Largest number of tokens in a batch, padding included; it is smaller on a CPU than on a GPU."""
        return largest_batch(self.device)

    def __call__(self, tokens: Tensor, mask: Tensor, last_layers: int = 1) -> Tensor:
        """Compute the encoder's hidden states for B texts of L tokens, padding included.

        Args:
            tokens: (B, L) token ids.
            mask: (B, L) bool, true for tokens that are not padding.
            last_layers: Number N of layers whose hidden states are returned, counted from the last layer.

        Returns:
            (B, L, N D) hidden states; D is the hidden size. The states of the N layers are side by side, and
            those of the last layer come last.
        """
        return self.encoder(tokens, mask, self.attention, last_layers)


def make_engine(encoder: Encoder, mode: str) -> Engine:
    """Prepare an encoder for computing similarity scores, on the device that holds it.

    Args:
        encoder: The encoder.
        mode: `exact` uses a float32 copy of the encoder, and `fast` a bfloat16 copy. `plain` uses the encoder
            itself: if training changes its weights, later scores use the new weights.

    Returns:
        An `Engine` with the encoder or its copy, and with an attention function. In mode `fast` on a CPU, the
        attention function is `fast_attention`, which is faster for short texts in bfloat16. In all other
        cases, it is `simllm.model.encoder.attention`.

    Raises:
        InputError: The mode is unknown.
    """
    if mode not in MODES:
        raise InputError(f"mode {mode!r}: expected one of {', '.join(MODES)}")
    is_fast_cpu = mode == "fast" and encoder.device.type == "cpu"
    return Engine(prepare_module(encoder, mode), fast_attention if is_fast_cpu else attention)


def prepare_module(module: Module, mode: str) -> Module:
    """Prepare a network for inference, on the device that holds it.

    Args:
        module: The network.
        mode: `plain` (no change), `exact` (a float32 copy) or `fast` (a bfloat16 copy).

    Returns:
        In mode `plain` the network itself, otherwise a copy. On a CPU, the weights of the copy's linear
        layers are packed: stored in the memory layout that the library oneDNN prefers. The first
        linear layer of each feed-forward network also applies the activation, which saves time. If oneDNN
        does not work on this machine, the copy keeps PyTorch's layers.
    """
    if mode == "plain":
        return module
    dtype = MODES[mode]
    return copy.deepcopy(module, packed_layers(module, dtype)).to(dtype)
