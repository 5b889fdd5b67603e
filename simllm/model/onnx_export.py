"""The encoder and its pooling as one ONNX graph."""

from __future__ import annotations

import warnings
from pathlib import Path

import torch
from torch import Tensor, nn

from simllm.errors import InputError
from simllm.io import files
from simllm.model import pooling
from simllm.model.checkpoint import Checkpoint
from simllm.model.inference import products


class Embedder(nn.Module):
    """Token ids to embeddings."""

    def __init__(self, checkpoint: Checkpoint, pooled_by: str) -> None:
        super().__init__()
        self.encoder, self.pool = checkpoint.encoder, pooling.named(pooled_by)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """(B, L), (B, L) int64, as tokenizers give them -> (B, D) float32."""
        mask = attention_mask.bool()
        return self.pool(self.encoder(input_ids, mask, products), mask)


def to_onnx(checkpoint: Checkpoint, file: Path) -> None:
    """Write the model as ONNX, whole or not at all, for batches of any size and length.

    Inputs `input_ids` and `attention_mask` (int64), output `sentence_embedding` (float32), pooled as
    the model folder says. Needs the extra `onnx`; raises InputError without it, and where
    `file` cannot be written.
    """
    example = torch.tensor([[0, 5, 6, 2], [0, 5, 2, 1]])
    file = files.real(file)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of torch about itself
            program = torch.onnx.export(
                Embedder(checkpoint, checkpoint.info.pooling).eval(),
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
