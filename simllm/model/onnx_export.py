"""Export of the encoder and its pooling as one ONNX model."""

from __future__ import annotations

import warnings
from pathlib import Path

import torch
from torch import Tensor, nn

from simllm.errors import InputError
from simllm.io import files
from simllm.model.checkpoint import Checkpoint
from simllm.model.inference import matmul_attention
from simllm.model.pooling import get_pooling


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
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns about its own internals
            program = torch.onnx.export(
                PooledEncoder(checkpoint).eval(),
                (example, (example != 1).long()),
                input_names=["input_ids", "attention_mask"],
                output_names=["sentence_embedding"],
                dynamic_shapes={name: {0: "batch", 1: "length"} for name in ("input_ids", "attention_mask")},
                dynamo=True,
                verbose=False,
            )
        assert program is not None
        with files.temporary(file) as partial:
            program.save(str(partial), external_data=False)
            files.sync(partial)
            partial.replace(file)
    except ModuleNotFoundError as error:
        raise InputError(f"{error.name} is not installed; install simllm with its extra `onnx`") from None
    except OSError as error:
        raise InputError(f"{file}: cannot be written ({error.strerror})") from None
