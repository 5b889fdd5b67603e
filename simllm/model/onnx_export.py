"""Export of the encoder and its pooling as one ONNX model."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from simllm.errors import InputError
from simllm.io import files
from simllm.model.checkpoint import Checkpoint
from simllm.model.inference import matmul_attention
from simllm.model.pooling import get_pooling

if TYPE_CHECKING:
    from torch.onnx import ONNXProgram


class PooledEncoder(nn.Module):
    """Network that maps token ids to text embeddings: an encoder followed by its pooling."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        super().__init__()
        self.encoder, self.pool = checkpoint.encoder, get_pooling(checkpoint.info.pooling)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Embed B texts of L tokens.

        Args:
            input_ids: (B, L) int64 token ids.
            attention_mask: (B, L) int64, 1 for tokens and 0 for padding.

        Returns:
            (B, D) float32 embeddings; D is the hidden size.
        """
        mask = attention_mask.bool()
        return self.pool(self.encoder(input_ids, mask, matmul_attention), mask)


def export_onnx(checkpoint: Checkpoint, file: Path) -> None:
    """Write the encoder and its pooling as an ONNX file.

    The ONNX model has the inputs `input_ids` and `attention_mask`, both (B, L) int64, and the output
    `sentence_embedding`, (B, D) float32. B texts and L tokens may be any numbers; D is the hidden size.

    Args:
        checkpoint: The loaded model folder.
        file: The path of the ONNX file. An existing file is replaced when the new one is complete.

    Raises:
        InputError: A package that the export needs is not installed, or `file` cannot be written.
    """
    example = torch.tensor([[0, 5, 6, 2], [0, 5, 2, 1]])
    file = files.real(file)
    program = to_onnx(
        PooledEncoder(checkpoint),
        {"input_ids": (example, ("batch", "length")), "attention_mask": ((example != 1).long(), ("batch", "length"))},
        ["sentence_embedding"],
    )
    try:
        with files.temporary(file) as partial:
            program.save(str(partial), external_data=False)
            files.sync(partial)
            partial.replace(file)
    except OSError as error:
        raise InputError(f"{file}: cannot be written ({error.strerror})") from None


def to_onnx(
    module: nn.Module, inputs: dict[str, tuple[Tensor, tuple[str, ...]]], outputs: list[str]
) -> ONNXProgram:
    """Convert a network to ONNX.

    Args:
        module: The network.
        inputs: For each argument of `module.forward`, in order: an example; and the names of its first
            dimensions, which may have any size.
        outputs: The names of the network's outputs.

    Raises:
        InputError: A package that the export needs is not installed.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns about its own internals
            program = torch.onnx.export(
                module.eval(),
                tuple(example for example, _ in inputs.values()),
                input_names=list(inputs),
                output_names=outputs,
                dynamic_shapes={name: dict(enumerate(sizes)) for name, (_, sizes) in inputs.items()},
                dynamo=True,
                verbose=False,
            )
    except ModuleNotFoundError as error:
        raise InputError(f"{error.name} is not installed; install simllm with its extra `onnx`") from None
    assert program is not None
    return program
