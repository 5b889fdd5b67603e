"""ONNX models, written without the package `onnx`: a graph of operations, and its bytes.

`Value` is a result in a graph. It has Python's operators, so that a network reads like one of torch.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
_IR_VERSION, _OPSET = 9, 20  # of ONNX 1.15, which introduced the exact Gelu
_TYPES = {"float32": 1, "int8": 3, "int64": 7, "bool": 9, "float16": 10}  # numbers of element types


@dataclass(frozen=True)
class Value:
    """A result of an operation, an input or a constant; `name` is unique in its graph."""

    graph: Graph
    name: str

    def __add__(self, other: Operand) -> Value:
        return self.graph.node("Add", self, other)

    def __sub__(self, other: Operand) -> Value:
        return self.graph.node("Sub", self, other)

    def __mul__(self, other: Operand) -> Value:
        return self.graph.node("Mul", self, other)

    def __truediv__(self, other: Operand) -> Value:
        return self.graph.node("Div", self, other)

    def __matmul__(self, other: Operand) -> Value:
        return self.graph.node("MatMul", self, other)


Operand = Value | Array | float | int | Sequence[int]  # float means float32, int means int64


class Graph:
    """A graph of operations, in the order in which they were added.

    Attributes:
        constants: Constants, such as weights, by name.
        nodes: Each node's operation, names of inputs, name of the output, and attributes.
    """

    def __init__(self) -> None:
        self.constants: dict[str, Array] = {}
        self.nodes: list[tuple[str, list[str], str, dict[str, Any]]] = []
        self._inputs: list[bytes] = []
        self._outputs: list[bytes] = []

    def input(self, name: str, kind: str, *sizes: str | int) -> Value:
        """Add an input with the name of its element type; a size that is a name may vary."""
        self._inputs.append(_declaration(name, kind, sizes))
        return Value(self, name)

    def node(self, operation: str, *inputs: Operand, **attributes: Any) -> Value:
        """Add an operation with one result."""
        name = f"{operation}_{len(self.nodes)}"
        self.nodes.append((operation, [self._operand(one) for one in inputs], name, attributes))
        return Value(self, name)

    def output(self, name: str, value: Value, *sizes: str | int) -> None:
        """Make a float32 value an output."""
        self.nodes.append(("Identity", [value.name], name, {}))
        self._outputs.append(_declaration(name, "float32", sizes))

    def _operand(self, value: Operand) -> str:
        if isinstance(value, Value):
            return value.name
        if not isinstance(value, np.ndarray):
            value = np.array(value, np.float32 if isinstance(value, float) else np.int64)
        name = f"constant_{len(self.constants)}"
        self.constants[name] = value
        return name

    def to_bytes(self) -> bytes:
        """Return the model as the content of an ONNX file."""
        graph = b"".join(
            [
                *(_field(1, _node(*node)) for node in self.nodes),
                _field(2, "simllm"),
                *(_field(5, _tensor(name, values)) for name, values in self.constants.items()),
                *(_field(11, one) for one in self._inputs),
                *(_field(12, one) for one in self._outputs),
            ]
        )
        opset = _field(1, "") + _field(2, _OPSET)
        return _field(1, _IR_VERSION) + _field(2, "simllm") + _field(7, graph) + _field(8, opset)


# An ONNX file is a Protocol Buffers message. The numbers of the fields are those of `onnx.proto`.
_BY_LENGTH, _FLOAT = 2, 5  # wire types; that of whole numbers is 0


def _varint(number: int) -> bytes:
    """Encode a whole number in groups of 7 bits, the lowest first."""
    number &= 2**64 - 1  # negative numbers in two's complement
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def _field(number: int, value: int | float | str | bytes) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    if isinstance(value, float):
        return _varint(number << 3 | _FLOAT) + struct.pack("<f", value)
    content = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | _BY_LENGTH) + _varint(len(content)) + content


def _declaration(name: str, kind: str, sizes: Sequence[str | int]) -> bytes:
    """Encode a ValueInfoProto."""
    shape = b"".join(_field(1, _field(2 if isinstance(size, str) else 1, size)) for size in sizes)
    return _field(1, name) + _field(2, _field(1, _field(1, _TYPES[kind]) + _field(2, shape)))


def _node(operation: str, inputs: Sequence[str], output: str, attributes: dict[str, Any]) -> bytes:
    """Encode a NodeProto."""
    parts = [
        *(_field(1, name) for name in inputs),
        _field(2, output),
        _field(3, output),
        _field(4, operation),
    ]
    return b"".join([*parts, *(_field(5, _attribute(*one)) for one in attributes.items())])


def _attribute(name: str, value: float | int | Sequence[int]) -> bytes:
    """Encode an AttributeProto."""
    if isinstance(value, float):
        return _field(1, name) + _field(2, value) + _field(20, 1)
    if isinstance(value, int):
        return _field(1, name) + _field(3, value) + _field(20, 2)
    return _field(1, name) + b"".join(_field(8, one) for one in value) + _field(20, 7)


def _tensor(name: str, values: Array) -> bytes:
    """Encode a TensorProto."""
    dimensions = b"".join(_field(1, size) for size in values.shape)
    content = np.ascontiguousarray(values).tobytes()
    return dimensions + _field(2, _TYPES[values.dtype.name]) + _field(8, name) + _field(9, content)
