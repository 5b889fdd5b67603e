"""Export of the encoder and its pooling (one embedding per text) as one ONNX model."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from simllm.errors import InputError
from simllm.io import output_file
from simllm.model.fast_attention import matmul_attention
from simllm.model.pooling import get_pooling
from simllm.model.saved_model import SavedModel
from simllm.optional_packages import missing_package

if TYPE_CHECKING:
    from onnx import ModelProto

_OPSET = 20


class PooledEncoder(nn.Module):
    """Network that maps token ids to text embeddings: an encoder followed by its pooling."""

    def __init__(self, model: SavedModel) -> None:
        super().__init__()
        self.encoder, self.pool = model.encoder, get_pooling(model.info.pooling)

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


def export_onnx(model: SavedModel, file: Path) -> None:
    """Write the encoder and its pooling as an ONNX file.

    The ONNX model has the inputs `input_ids` and `attention_mask`, both (B, L) int64, and the output
    `sentence_embedding`, (B, D) float32. B is the number of texts and L the number of tokens; both may be any
    number. D is the hidden size.

    Args:
        model: The loaded model folder.
        file: The path of the ONNX file. An existing file is replaced when the new one is complete.

    Raises:
        InputError: A package that the export needs is not installed, or `file` cannot be written.
    """
    ids = torch.tensor([[0, 5, 6, 2], [0, 5, 2, 1]])
    sizes = ("batch", "length")
    inputs = {"input_ids": (ids, sizes), "attention_mask": ((ids != 1).long(), sizes)}
    output_file.write(file, to_onnx(PooledEncoder(model), inputs, ["sentence_embedding"]).SerializeToString())


def to_onnx(
    module: nn.Module, inputs: Mapping[str, tuple[Tensor, tuple[str, ...]]], outputs: list[str]
) -> ModelProto:
    """Convert a network to ONNX.

    Args:
        module: The network.
        inputs: A dict with an entry for each argument of `module.forward`, in order. The key is the name of
            the argument. The value is an example tensor, and names for the tensor's first dimensions, such as
            ("batch", "length"). The named dimensions may have any size in the ONNX model; all others are
            fixed.
        outputs: The names of the network's outputs.

    Returns:
        The ONNX model.

    Raises:
        InputError: A package that the export needs is not installed.
    """
    try:
        import onnx

        with warnings.catch_warnings(), tempfile.NamedTemporaryFile(suffix=".onnx") as file:
            warnings.simplefilter("ignore")  # torch warns about its own internals
            torch.onnx.export(
                module.eval(),
                tuple(example for example, _ in inputs.values()),
                file.name,
                input_names=list(inputs),
                output_names=outputs,
                dynamic_axes={name: dict(enumerate(sizes)) for name, (_, sizes) in inputs.items()},
                dynamo=False,  # the other exporter takes twenty times as long
                opset_version=_OPSET,
            )
            return onnx.load(file.name)
    except ModuleNotFoundError as error:
        raise InputError(missing_package(error.name, "onnx")) from None
