"""The model in the form that a browser reads: two ONNX graphs with small weights, and the tokenizer.

The graphs compute in float32. Their weights are stored as int8 if they are already rounded to 8 bits, as
those of the included model are, else as float16. They are decoded when a graph is loaded. The token
embeddings, half of all weights, are in a file of their own, so that each file stays below the limits of
common web hosts.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from simllm.io import files
from simllm.model.checkpoint import TOKENIZER, Checkpoint
from simllm.model.inference import matmul_attention
from simllm.model.onnx_export import to_onnx
from simllm.model.weight_blocks import BLOCK, Floats, are_blocks, to_blocks

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto, TensorProto

ENCODER, TOKENS, HEAD = "encoder.onnx", "tokens.bin", "meaning_head.onnx"
_SMALL = 1024  # arrays with fewer numbers stay float32
Stored = NDArray[Any]


class TokenStates(nn.Module):
    """Network that maps token ids to hidden states, and to the states that the meaning head reads."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        super().__init__()
        self.encoder, self.head = checkpoint.encoder, checkpoint.head

    def forward(self, input_ids: Tensor) -> tuple[Tensor, ...]:
        """Encode B texts that all have L tokens.

        Args:
            input_ids: (B, L) int64 token ids, without padding.

        Returns:
            (B, L, D) hidden states; D is the hidden size. With a meaning head also the (B, L, W) states
            that are mapped to its width W.
        """
        states = self.encoder(input_ids, None, matmul_attention)
        return (states, self.head.project(states)) if self.head else (states,)


class PairLogits(nn.Module):
    """Network that maps the mapped states of P text pairs to logits of the same meaning."""

    def __init__(self, head: nn.Module) -> None:
        super().__init__()
        self.head = head

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        """Compare P pairs of texts without padding.

        Args:
            first: (P, L, W) states of the first texts, mapped to the head's width W.
            second: (P, M, W) mapped states of the second texts.

        Returns:
            (P,) logits of the probability that the two texts have the same meaning.
        """
        masks = [torch.ones(states.shape[:2], dtype=torch.bool) for states in (first, second)]
        return self.head(first, masks[0], second, masks[1], matmul_attention)


def write_browser_model(checkpoint: Checkpoint, folder: Path, int8: bool = False) -> bool:
    """Write the model for a browser: `encoder.onnx`, `tokens.bin`, `meaning_head.onnx`, `tokenizer.json`.

    Args:
        checkpoint: The loaded model folder.
        folder: An existing folder.
        int8: Store all large weights as int8, also those that are not rounded to 8 bits yet. The files are
            half as large, and scores are less exact.

    Returns:
        Whether a weight was rounded for this, so that scores differ a little from those of the model folder.

    Raises:
        InputError: A package that the export needs is not installed, or a file cannot be written.
    """
    ids = torch.tensor([[0, 5, 6, 2], [0, 5, 7, 2]])
    outputs = ["states", "mapped"] if checkpoint.head else ["states"]
    inputs = {"input_ids": (ids, ("batch", "length"))}
    encoder = to_onnx(TokenStates(checkpoint), inputs, outputs)
    rounded = _compress(encoder.graph, int8)
    files.write(folder / TOKENS, _move_token_table(encoder.graph))
    files.write(folder / ENCODER, encoder.SerializeToString())
    files.write(folder / TOKENIZER, checkpoint.tokenizer.backend.to_str())
    if checkpoint.head:
        first, second = (torch.zeros(2, length, checkpoint.head.config.width) for length in (5, 4))
        examples = {"first": (first, ("pairs", "length")), "second": (second, ("pairs", "other_length"))}
        head = to_onnx(PairLogits(checkpoint.head), examples, ["logits"])
        rounded |= _compress(head.graph, int8)
        files.write(folder / HEAD, head.SerializeToString())
    return rounded


def _compress(graph: GraphProto, int8: bool) -> bool:
    """Store the large float32 weights of an ONNX graph as float16 or int8, and insert nodes that decode them.

    Args:
        graph: The graph; it is changed.
        int8: Whether to use int8 also for weights that lose by it.

    Returns:
        Whether a weight lost by it.
    """
    from onnx import numpy_helper

    nodes = [*graph.node]
    tables = {node.input[0] for node in nodes if node.op_type == "Gather"}
    decoding: list[NodeProto] = []
    rounded = False
    for weight in [*graph.initializer]:
        values = numpy_helper.to_array(weight)
        if values.dtype == np.float32 and values.size >= _SMALL:
            # Blocks run along a table's rows, and along the inputs of a linear layer, which are its rows.
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


def _as_float16(name: str, values: Floats) -> tuple[dict[str, Stored], list[NodeProto]]:
    """Return the float16 array that stores a weight, by its name, and the nodes that decode it."""
    from onnx import TensorProto, helper

    stored = f"{name}.float16"
    return {stored: values.astype(np.float16)}, [
        helper.make_node("Cast", [stored], [name], to=TensorProto.FLOAT)
    ]


def _as_int8(name: str, values: Floats, columns: int) -> tuple[dict[str, Stored], list[NodeProto]]:
    """Store a weight as int8, in blocks that share a float16 scale.

    Args:
        name: The name of the weight.
        values: The weight.
        columns: Number of neighbouring values that belong to different blocks.

    Returns:
        The arrays that store the weight, by their names, and the nodes that decode them.
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
    """Mark the largest weight of a graph as stored in `tokens.bin`; return the content of that file."""
    from onnx import external_data_helper

    table: TensorProto = max(graph.initializer, key=lambda tensor: len(tensor.raw_data))
    content = table.raw_data
    external_data_helper.set_external_data(table, TOKENS)
    table.ClearField("raw_data")
    return content
