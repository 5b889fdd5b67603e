"""Random arguments for Java functions, which fit the types of the parameters."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote

from tree_sitter import Node

from simllm.perturb.code.java.parsing import children, field_child, find_nodes, parse, required
from simllm.perturb.code.proof.arguments import LARGE, DrawnValues

_BITS = {"byte": 8, "short": 16, "int": 32, "long": 64}
_BOXES = {"Byte": "byte", "Short": "short", "Integer": "int", "Long": "long", "Float": "float"}
_BOXES |= {"Double": "double", "Boolean": "boolean", "Character": "char"}
_PRIMITIVES = frozenset(_BOXES.values())
_SEQUENCES = dict.fromkeys(("List", "Collection", "Iterable", "ArrayList", "AbstractList"), "ArrayList")
_SEQUENCES |= {"LinkedList": "LinkedList", "Vector": "Vector", "Stack": "Stack"}
_SEQUENCES |= {"Deque": "ArrayDeque", "ArrayDeque": "ArrayDeque", "Queue": "LinkedList"}
_SEQUENCES |= {"Iterator": "Iterator", "PriorityQueue": "PriorityQueue", "Optional": "Optional"}
_SETS = {"Set": "LinkedHashSet", "LinkedHashSet": "LinkedHashSet", "HashSet": "HashSet", "TreeSet": "TreeSet"}
_SETS |= {"SortedSet": "TreeSet", "NavigableSet": "TreeSet"}
_MAPS = {"Map": "LinkedHashMap", "LinkedHashMap": "LinkedHashMap", "HashMap": "HashMap", "TreeMap": "TreeMap"}
_MAPS |= {"SortedMap": "TreeMap", "NavigableMap": "TreeMap"}
_TEXTS = {name: name for name in ("String", "StringBuilder", "StringBuffer")} | {"CharSequence": "String"}
_STAND_INS = {"Comparable": ("Integer",), "Object": ("Integer", "String", "Double")}
_STAND_INS |= {"Number": ("Integer", "Long", "Double")}
_KNOWN = {*_PRIMITIVES, *_BOXES, *_SEQUENCES, *_SETS, *_MAPS, *_TEXTS, *_STAND_INS}
_KNOWN |= {"[]", "BigInteger", "BigDecimal", "Random", "Comparator"}
_NULLS = 1 / 8  # the share of null; most functions do not accept it


@dataclass(frozen=True)
class JavaType:
    """The type of a parameter of a Java function.

    Attributes:
        name: The simple name without type arguments, such as `List`; `[]` for an array.
        arguments: The type arguments, such as `String` in `List<String>`; for an array, its items' type.
    """

    name: str
    arguments: tuple[JavaType, ...] = ()

    @property
    def erased(self) -> str:
        """The name without type arguments: `List` for `List<String>`, and `int[]` for `int[]`."""
        return f"{self.arguments[0].erased}[]" if self.name == "[]" else self.name


@dataclass(frozen=True)
class JavaSignature:
    """The signature of a Java method or constructor.

    Attributes:
        name: The name of the method; for a constructor, the name of its class.
        overrides: Whether the function has the annotation `@Override`.
    """

    name: str
    is_constructor: bool
    parameters: tuple[JavaType, ...]
    overrides: bool


def find_signature(source: str) -> JavaSignature | None:
    """Return the signature of a method or constructor; None if the source is a whole file.

    Raises:
        InputError: The source has a syntax error.
    """
    unit = parse(source.encode())
    if not unit.is_function:
        return None
    # `parse` puts a class around a function.
    function = children(find_nodes(unit.root, "class_body")[-1])[0]
    variables = {
        unit.text_of(children(node)[0]).decode()
        for holder in function.named_children
        if holder.type == "type_parameters"
        for node in children(holder)
    }
    parameters = []
    for node in children(required(function, "parameters")):
        if node.type == "receiver_parameter":
            continue
        if node.type == "spread_parameter":
            item = next(child for child in children(node) if child.type != "modifiers")
            parameters.append(JavaType("[]", (_type(item, variables),)))
        else:
            kind = _type(required(node, "type"), variables)
            parameters.append(_array(kind, field_child(node, "dimensions")))
    annotations = [
        unit.text_of(node)
        for holder in function.named_children
        if holder.type == "modifiers"
        for node in holder.named_children
    ]
    return JavaSignature(
        unit.text_of(required(function, "name")).decode(),
        function.type == "constructor_declaration",
        tuple(parameters),
        b"@Override" in annotations,
    )


def _type(node: Node, variables: set[str]) -> JavaType:
    """Return the type of a syntax node; type variables and bare wildcards become `Integer`."""
    text = (node.text or b"").decode()
    if node.type == "array_type":
        return _array(_type(required(node, "element"), variables), required(node, "dimensions"))
    if node.type == "generic_type":
        name, *rest = children(node)
        return JavaType(_type(name, set()).name, tuple(_type(item, variables) for item in children(rest[-1])))
    if node.type == "wildcard":
        bounds = children(node)
        return _type(bounds[-1], variables) if bounds else JavaType("Integer")
    if node.type == "annotated_type":
        return _type(children(node)[-1], variables)
    # Any class fits a type variable without a bound.
    return JavaType("Integer" if text in variables else text.rpartition(".")[2])


def _array(kind: JavaType, dimensions: Node | None) -> JavaType:
    """Return an array of a type with one dimension for each pair of brackets in a syntax node, if any."""
    for _ in range((dimensions.text or b"").count(b"[") if dimensions else 0):
        kind = JavaType("[]", (kind,))
    return kind


def unknown_types(types: tuple[JavaType, ...]) -> list[str]:
    """Return the names of the types for which no random values can be generated."""
    return list(dict.fromkeys(name for kind in types for name in _unknown(kind)))


def _unknown(kind: JavaType) -> list[str]:
    if kind.name not in _KNOWN:
        return [kind.name]
    return [] if kind.name == "Comparator" else unknown_types(kind.arguments)


def draw_inputs(types: tuple[JavaType, ...], source: str, number: int, seed: int) -> list[tuple[str, bool]]:
    """Draw distinct inputs for parameters of known types, which also use the literals in the source.

    An input is a text such as "int:7 null", which `ProofValues.java` decodes, and whether it is large.
    """
    values = _JavaValues(DrawnValues(source, seed))
    inputs = values.drawn.different(lambda: " ".join(map(values.of, types)), number)
    return [(text, _is_large(text)) for text in inputs]


def _is_large(text: str) -> bool:
    """Return whether an argument is an integer above 10,000 in size, for which a loop may take very long."""
    scalars = (word.partition(":") for word in text.split(" "))
    return any(kind in ("int", "long") and abs(int(value)) > LARGE for kind, _, value in scalars)


class _JavaValues:
    """Random values of Java types, written as text for `ProofValues.java`."""

    def __init__(self, drawn: DrawnValues) -> None:
        self.drawn = drawn

    def of(self, kind: JavaType, nullable: bool = True) -> str:
        """Draw a value such as "int:7", "null", or "ArrayList 2 int:7 null" for a list of two items."""
        if kind.name in _PRIMITIVES:
            return self._primitive(kind.name)
        if nullable and self.drawn.chance(_NULLS):
            return "null"
        return self._object(kind)

    def _primitive(self, name: str) -> str:
        if name == "boolean":
            return f"boolean:{self.drawn.choice(('false', 'true'))}"
        if name == "char":
            return f"char:{ord(self.drawn.character()) & 0xFFFF}"
        if name in ("float", "double"):
            text = repr(self.drawn.number())
            return f"{name}:{text.replace('nan', 'NaN').replace('inf', 'Infinity')}"
        most = 1 << _BITS[name] - 1
        return f"{name}:{self.drawn.integer(-most, most - 1)}"

    def _object(self, kind: JavaType) -> str:
        name, arguments = kind.name, kind.arguments
        if name in _BOXES:
            return self._primitive(_BOXES[name])
        if name in _TEXTS:
            return f"{_TEXTS[name]}:{quote(self.drawn.text(), safe='')}"
        if name in _STAND_INS:
            given = arguments if name == "Comparable" else ()
            return self._object(self.drawn.choice(given or tuple(map(JavaType, _STAND_INS[name]))))
        if name in ("BigInteger", "BigDecimal", "Random"):
            return f"{name}:{self.drawn.integer()}"
        if name == "Comparator":
            return "Comparator 0"
        if name in _MAPS:
            key, value = arguments if len(arguments) == 2 else (JavaType("String"), JavaType("Integer"))
            # Sorted maps and sets compare their keys, which fails for null.
            keys = self.drawn.items(lambda: self.of(key, nullable=False), unique=True)
            return _container(_MAPS[name], [f"{text} {self.of(value)}" for text in keys])
        item = arguments[0] if arguments else JavaType("Integer")
        if name in _SETS:
            items = self.drawn.items(lambda: self.of(item, nullable=False), unique=True)
            return _container(_SETS[name], items)
        container = kind.erased if name == "[]" else _SEQUENCES[name]
        # Most others throw an exception for null items.
        nullable = container in ("ArrayList", "LinkedList", "Vector") or name == "[]"
        return _container(container, self.drawn.items(lambda: self.of(item, nullable)))


def _container(name: str, items: list[str]) -> str:
    return " ".join([name, str(len(items)), *items])
