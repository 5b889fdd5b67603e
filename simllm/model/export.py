"""Export of the encoder and its pooling (one embedding per text) as one ONNX model."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from simllm.array_types import Floats32
from simllm.errors import InputError
from simllm.io import output_file
from simllm.io.packages import missing_package
from simllm.model.encoder import of_last_layer
from simllm.model.engines import matmul_attention
from simllm.model.pooling import get_pooling
from simllm.model.saved_model import BLOCK, TOKENIZER, SavedModel, are_blocks, to_blocks

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, TensorProto

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


ENCODER, TOKENS, HEAD = "encoder.onnx", "tokens.bin", "meaning_head.onnx"
_SMALL = 1024  # arrays with fewer numbers stay float32
Stored = NDArray[Any]


class TokenStates(nn.Module):
    """Network that encodes each text on its own, before texts are compared in pairs.

    The network computes the encoder's hidden states. A model may also have a meaning head, a small network
    that predicts whether two texts have the same meaning. The first layer of the head, `project`, needs only
    one text. Therefore, this network applies it to the hidden states, once for each text. The network
    `PairLogits` has the other layers of the head, which need both texts.
    """

    def __init__(self, model: SavedModel) -> None:
        super().__init__()
        self.encoder, self.head = model.encoder, model.head

    def forward(self, input_ids: Tensor) -> tuple[Tensor, ...]:
        """Encode B texts that all have L tokens.

        Args:
            input_ids: (B, L) int64 token ids, without padding.

        Returns:
            A tuple with the (B, L, D) hidden states of the encoder's last layer; D is the hidden size. If the
            model has a meaning head, the tuple also has the (B, L, W) output of the head's first layer; W is
            the width of the head.
        """
        layers = self.head.config.encoder_layers if self.head else 1
        states = self.encoder(input_ids, None, matmul_attention, layers)
        last = of_last_layer(states, self.encoder.config.hidden_size)
        return (last, self.head.project(states)) if self.head else (last,)


class PairLogits(nn.Module):
    """Network that predicts, for each text pair, whether both texts have the same meaning.

    This network is the meaning head without its first layer, `project`. The network `TokenStates` applies
    `project` to each text once. The results for both texts of a pair are the inputs of `PairLogits`. The
    output is the logit of the probability that both texts have the same meaning.
    """

    def __init__(self, head: nn.Module) -> None:
        super().__init__()
        self.head = head

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        """Predict for each of P text pairs whether the two texts have the same meaning.

        The meaning head makes this prediction. Its first layer was already applied to both texts, and has
        given a vector of length W for each token. The texts have no padding.

        Args:
            first: (P, L, W) output of the first layer for the first text of each pair, with L tokens.
            second: (P, M, W) output of the first layer for the second text of each pair, with M tokens.

        Returns:
            (P,) logits of the probability that the two texts have the same meaning.
        """
        masks = [torch.ones(states.shape[:2], dtype=torch.bool) for states in (first, second)]
        return self.head(first, masks[0], second, masks[1], matmul_attention)


def write_browser_model(model: SavedModel, folder: Path, int8: bool = False) -> bool:
    """Write the files with which a web browser can run the model.

    The files are `encoder.onnx`, `tokens.bin` (token embeddings), `tokenizer.json` and, if the model has a
    meaning head, `meaning_head.onnx`. The meaning head predicts whether two texts have the same meaning.

    Args:
        model: The loaded model folder.
        folder: An existing folder.
        int8: Whether to store large weights as int8 even if this loses precision. If false, such weights are
            stored as float16, which takes twice the space, but makes scores more exact. Large weights that
            lose no precision, such as all of the default model, are always stored as int8.

    Returns:
        Whether this function rounded a weight to 8 bits. If so, scores differ a little from those of the
        model folder.

    Raises:
        InputError: A package that the export needs is not installed, or a file cannot be written.
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
    """Store the large float32 weights of an ONNX graph as float16 or int8, and insert nodes that decode them.

    Args:
        graph: The graph; it is changed.
        int8: If true, weights are stored as int8 even if they lose precision. If false, only weights that
            lose no precision are stored as int8, and all others as float16.

    Returns:
        Whether a weight lost precision because it was stored as int8.
    """
    from onnx import numpy_helper

    nodes = [*graph.node]
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
    graph.node.extend([*decoding, *nodes])
    return rounded


def _as_float16(name: str, values: Floats32) -> tuple[dict[str, Stored], list[NodeProto]]:
    """Store a weight as float16.

    Args:
        name: The name of the weight.
        values: The weight.

    Returns:
        A dict from the name of the stored array to the float16 array; and the ONNX nodes that decode this
        array to float32.
    """
    from onnx import TensorProto, helper

    stored = f"{name}.float16"
    return {stored: values.astype(np.float16)}, [
        helper.make_node("Cast", [stored], [name], to=TensorProto.FLOAT)
    ]


def _as_int8(name: str, values: Floats32, columns: int) -> tuple[dict[str, Stored], list[NodeProto]]:
    """Store a weight matrix as int8, in blocks of 32 numbers that share a float16 scale.

    Args:
        name: The name of the matrix.
        values: The matrix, in float32.
        columns: Either 1 or the number of columns of the matrix. If it is 1, a block is 32 consecutive
            numbers in one row. If it is the number of columns, a block is 32 consecutive numbers in one
            column.

    Returns:
        A dict from names to the three arrays that store the matrix (int8 numbers, scales and shape); and the
        ONNX nodes that compute the float32 matrix from these arrays.
    """
    from onnx import TensorProto, helper

    whole, factors = to_blocks(values, columns)
    parts: dict[str, Stored] = {
        f"{name}.int8": whole,
        f"{name}.scales": factors,
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
    """Move the token embeddings (the largest weight) out of an ONNX graph.

    Args:
        graph: The graph of the encoder. It is changed: it then refers to the file `tokens.bin` for the token
            embeddings.

    Returns:
        The bytes of the token embeddings, which the caller must write to `tokens.bin`.
    """
    from onnx import external_data_helper

    table: TensorProto = max(graph.initializer, key=lambda tensor: len(tensor.raw_data))
    content = table.raw_data
    external_data_helper.set_external_data(table, TOKENS)
    table.ClearField("raw_data")
    return content
