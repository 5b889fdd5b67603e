"""Export of the encoder and its pooling (one embedding per text) as one ONNX model."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from simllm.array_types import Floats32
from simllm.errors import InputError
from simllm.io import output_file
from simllm.io.packages import missing_package, require_onnx_extra
from simllm.model.saved_model import BLOCK, TOKENIZER, SavedModel, are_blocks, to_blocks

with require_onnx_extra():
    import torch
    from torch import Tensor, nn
    from torch.nn import functional as F

    from simllm.model.network import get_pooling, of_last_layer
    from simllm.model.torch_engine import matmul_attention

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, TensorProto

    from simllm.model.code_model import CodeModel

_OPSET = 20


class PooledEncoder(nn.Module):
    """Network that maps token ids to text embeddings: an encoder followed by its pooling."""

    def __init__(self, model: SavedModel) -> None:
        super().__init__()
        self.encoder, self.pool = model.encoder, get_pooling(model.info.pooling)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Map (B, L) int64 ids and their (B, L) int64 mask to (B, D) float32 embeddings."""
        mask = attention_mask.bool()
        return self.pool(self.encoder(input_ids, mask, matmul_attention), mask)


class CodeCosine(nn.Module):
    """Network that embeds code, and compares it with summaries that are embedded already."""

    def __init__(self, model: CodeModel) -> None:
        super().__init__()
        self.encoder, self.summary_map = PooledEncoder(model.networks), model.summary_map

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, summary_embedding: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the (B, D) embeddings of code, and their (B,) cosines with the summaries."""
        code = self.encoder(input_ids, attention_mask)
        return code, F.cosine_similarity(code, self.summary_map(summary_embedding))


_IDS = torch.tensor([[0, 5, 6, 2], [0, 5, 2, 1]])
_SIZES = ("batch", "length")
_INPUTS = {"input_ids": (_IDS, _SIZES), "attention_mask": ((_IDS != 1).long(), _SIZES)}  # examples
_OUTPUTS = ["sentence_embedding"]


def export_onnx(model: SavedModel, file: Path) -> None:
    """Write the encoder and its pooling as an ONNX file, which replaces an existing file when it is complete.

    The inputs are `input_ids` and `attention_mask`, (B, L) int64 for any B and L. The output is
    `sentence_embedding`, (B, D) float32.
    """
    output_file.write(file, to_onnx(PooledEncoder(model), _INPUTS, _OUTPUTS).SerializeToString())


def export_code_onnx(model: CodeModel, file: Path) -> None:
    """Write the encoder of code as `export_onnx` does, with the comparison to summaries.

    A third input, `summary_embedding` (B, D), has the embeddings of B summaries by the encoder of summaries.
    A second output, `cosine` (B,), compares each with its code.
    """
    summaries = torch.ones(2, model.networks.config.hidden_size), ("batch",)
    inputs = {**_INPUTS, "summary_embedding": summaries}
    output_file.write(file, to_onnx(CodeCosine(model), inputs, [*_OUTPUTS, "cosine"]).SerializeToString())


def to_onnx(
    module: nn.Module, inputs: Mapping[str, tuple[Tensor, tuple[str, ...]]], outputs: list[str]
) -> ModelProto:
    """Convert a network to ONNX; raise InputError if a package for that is not installed.

    `inputs` has, for each argument of `forward` in order, an example and names for its first dimensions, such
    as ("batch", "length"). Named dimensions may have any size in the ONNX model; all others are fixed.
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


# The token embeddings, half of all weights, have a file of their own, so that each file stays below the size
# limits of common web hosts.
ENCODER, TOKENS, HEAD = "encoder.onnx", "tokens.bin", "meaning_head.onnx"
_SMALL = 1024  # arrays with fewer numbers stay float32
Stored = NDArray[Any]


class TokenStates(nn.Module):
    """Network of all that needs only one text: the encoder, and the first layer of the meaning head."""

    def __init__(self, model: SavedModel) -> None:
        super().__init__()
        self.encoder, self.head = model.encoder, model.head

    def forward(self, input_ids: Tensor) -> tuple[Tensor, ...]:
        """Map (B, L) ids without padding to (B, L, D) states and, with a head, (B, L, W) projections."""
        layers = self.head.config.encoder_layers if self.head else 1
        states = self.encoder(input_ids, None, matmul_attention, layers)
        last = of_last_layer(states, self.encoder.config.hidden_size)
        return (last, self.head.project(states)) if self.head else (last,)


class PairLogits(nn.Module):
    """The meaning head without its first layer, which `TokenStates` applies, and without a graded output."""

    def __init__(self, head: nn.Module) -> None:
        super().__init__()
        self.head = head

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        """Map (P, L, W) and (P, M, W) outputs of `project`, without padding, to (P,) logits."""
        masks = [torch.ones(states.shape[:2], dtype=torch.bool) for states in (first, second)]
        return self.head(first, masks[0], second, masks[1], matmul_attention).squeeze(-1)


def write_browser_model(model: SavedModel, folder: Path, int8: bool = False) -> bool:
    """Write the files with which a web browser can run the model into an existing folder.

    If `int8` is true, large weights are stored as int8 even if they lose precision. Otherwise they become
    float16, which takes twice the space. Weights that lose nothing are int8 in any case. The result tells
    whether a weight was rounded to 8 bits; then scores differ a little from those of the model folder.
    """
    ids = torch.tensor([[0, 5, 6, 2], [0, 5, 7, 2]])
    outputs = ["states", "mapped"] if model.head else ["states"]
    inputs = {"input_ids": (ids, ("batch", "length"))}
    encoder = to_onnx(TokenStates(model), inputs, outputs)
    rounded = _compress(encoder.graph, int8)
    output_file.write(folder / TOKENS, _move_token_table(encoder.graph))
    output_file.write(folder / ENCODER, encoder.SerializeToString())
    output_file.write(folder / TOKENIZER, model.tokenizer.backend.to_str())
    if model.head:
        first, second = (torch.zeros(2, length, model.head.config.width) for length in (5, 4))
        examples = {"first": (first, ("pairs", "length")), "second": (second, ("pairs", "other_length"))}
        head = to_onnx(PairLogits(model.head), examples, ["logits"])
        rounded |= _compress(head.graph, int8)
        output_file.write(folder / HEAD, head.SerializeToString())
    return rounded


def _compress(graph: GraphProto, int8: bool) -> bool:
    """Store large weights of a graph as float16 or int8, in place; return whether one lost precision."""
    from onnx import numpy_helper

    nodes = [*graph.node]
    # An embedding table is known by the node that looks up its rows; all other weights are factors of
    # products.
    tables = {node.input[0] for node in nodes if node.op_type == "Gather"}
    decoding: list[NodeProto] = []
    rounded = False
    for weight in [*graph.initializer]:
        values = numpy_helper.to_array(weight)
        if values.dtype == np.float32 and values.size >= _SMALL:
            # The 32 numbers of a block lie in one row of an embedding table, or in one column of a matrix.
            columns = 1 if weight.name in tables else values.shape[-1]
            exact = are_blocks(values, columns)
            loses = int8 and not exact and not values.size % (BLOCK * columns)
            rounded |= loses
            parts, steps = (
                _as_int8(weight.name, values, columns) if exact or loses else _as_float16(weight.name, values)
            )
            graph.initializer.remove(weight)
            graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in parts.items())
            decoding += steps
    del graph.node[:]
    # ONNX wants each node after those whose results it takes.
    graph.node.extend([*decoding, *nodes])
    return rounded


def _as_float16(name: str, values: Floats32) -> tuple[dict[str, Stored], list[NodeProto]]:
    """Return the float16 array under its new name, and the nodes that decode it."""
    from onnx import TensorProto, helper

    stored = f"{name}.float16"
    return {stored: values.astype(np.float16)}, [
        helper.make_node("Cast", [stored], [name], to=TensorProto.FLOAT)
    ]


def _as_int8(name: str, values: Floats32, columns: int) -> tuple[dict[str, Stored], list[NodeProto]]:
    """Return the arrays that `to_blocks` makes of a weight, by name, and the nodes that decode them."""
    from onnx import TensorProto, helper

    whole, factors = to_blocks(values, columns)
    parts: dict[str, Stored] = {
        f"{name}.int8": whole,
        f"{name}.scales": factors,
        # An array, because Reshape takes the new shape as an input.
        f"{name}.shape": np.array(values.shape),
    }
    numbers, scale, shape = parts
    return parts, [
        helper.make_node("Cast", [numbers], [f"{numbers}.float"], to=TensorProto.FLOAT),
        helper.make_node("Cast", [scale], [f"{scale}.float"], to=TensorProto.FLOAT),
        helper.make_node("Mul", [f"{numbers}.float", f"{scale}.float"], [f"{name}.blocks"]),
        helper.make_node("Reshape", [f"{name}.blocks", shape], [name]),
    ]


def _move_token_table(graph: GraphProto) -> bytes:
    """Let the encoder's graph refer to `tokens.bin` for the token embeddings; return the file's content."""
    from onnx import external_data_helper

    table: TensorProto = max(graph.initializer, key=lambda tensor: len(tensor.raw_data))
    content = table.raw_data
    external_data_helper.set_external_data(table, TOKENS)
    table.ClearField("raw_data")
    return content
