"""Seeded inputs for Java functions, from the types of their parameters."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import quote

from tree_sitter import Node

from simllm.perturb.code.java.java_tree import children, field, find_nodes, parse, required
from simllm.perturb.code.proof.drawn_values import CHARACTERS, LARGE, draw, find_literals

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

_BITS = {"byte": 8, "short": 16, "int": 32, "long": 64}
_BOXES = {"Byte": "byte", "Short": "short", "Integer": "int", "Long": "long", "Float": "float"}
_BOXES |= {"Double": "double", "Boolean": "boolean", "Character": "char"}
_PRIMITIVES = frozenset(_BOXES.values())
_SEQUENCES = {"List": "ArrayList", "Collection": "ArrayList", "Iterable": "ArrayList", "ArrayList": "ArrayList"}
_SEQUENCES |= {"AbstractList": "ArrayList", "LinkedList": "LinkedList", "Vector": "Vector", "Stack": "Stack"}
_SEQUENCES |= {"Deque": "ArrayDeque", "ArrayDeque": "ArrayDeque", "Queue": "LinkedList"}
_SEQUENCES |= {"Iterator": "Iterator", "PriorityQueue": "PriorityQueue", "Optional": "Optional"}
_SETS = {"Set": "LinkedHashSet", "LinkedHashSet": "LinkedHashSet", "HashSet": "HashSet", "TreeSet": "TreeSet"}
_SETS |= {"SortedSet": "TreeSet", "NavigableSet": "TreeSet"}
_MAPS = {"Map": "LinkedHashMap", "LinkedHashMap": "LinkedHashMap", "HashMap": "HashMap", "TreeMap": "TreeMap"}
_MAPS |= {"SortedMap": "TreeMap", "NavigableMap": "TreeMap"}
_TEXTS = ("String", "StringBuilder", "StringBuffer")
_LONGEST = 6  # items of a container


@dataclass(frozen=True)
class JavaType:
    """The type of a parameter.

    Attributes:
        name: The simple name without type arguments; `[]` for an array.
        arguments: The type arguments; the type of the items of an array.
    """

    name: str
    arguments: tuple[JavaType, ...] = ()

    @property
    def erased(self) -> str:
        """The name without type arguments, as `Class.getSimpleName` has it."""
        return f"{self.arguments[0].erased}[]" if self.name == "[]" else self.name


@dataclass(frozen=True)
class JavaSignature:
    """How a function is called.

    Attributes:
        name: The name of the function; that of its class for a constructor.
        is_constructor: Whether the function is a constructor.
        parameters: The types of the parameters.
        overrides: Whether the function has the annotation `@Override`.
    """

    name: str
    is_constructor: bool
    parameters: tuple[JavaType, ...]
    overrides: bool


def find_signature(source: str) -> JavaSignature | None:
    """Return how a function is called; None if the source is a file."""
    unit = parse(source.encode())
    if not unit.is_function:
        return None
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
            parameters.append(_array(kind, field(node, "dimensions")))
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
    """Return the type that a syntax node names. A type variable becomes Integer."""
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
    return JavaType("Integer" if text in variables else text.rpartition(".")[2])


def _array(kind: JavaType, dimensions: Node | None) -> JavaType:
    """Return the type of an array with the dimensions `[]...` of a syntax node."""
    for _ in range((dimensions.text or b"").count(b"[") if dimensions else 0):
        kind = JavaType("[]", (kind,))
    return kind


def unknown_types(types: tuple[JavaType, ...]) -> list[str]:
    """Return the names of the types for which no values can be made."""
    return list(dict.fromkeys(name for kind in types for name in _unknown(kind)))


def _unknown(kind: JavaType) -> list[str]:
    known = kind.name in _PRIMITIVES or kind.name in _BOXES or kind.name in _SEQUENCES or kind.name in _SETS
    known = known or kind.name in _MAPS or kind.name in _TEXTS
    known = known or kind.name in ("[]", "Object", "Number", "Comparable", "CharSequence", "BigInteger")
    known = known or kind.name in ("BigDecimal", "Random", "Comparator")
    if not known:
        return [kind.name]
    return [] if kind.name in ("Comparator", "Comparable") else unknown_types(kind.arguments)


def draw_inputs(
    types: tuple[JavaType, ...], source: str, number: int, seed: int
) -> list[tuple[str, bool]]:
    """Draw inputs for a function.

    Args:
        types: The types of its parameters, all of them known.
        source: The function; its literals become inputs, too.
        number: The number of inputs; there are fewer if there are no more different ones.
        seed: The seed of the choice.

    Returns:
        Different inputs, as the harness reads them, and whether there is a large number in each.
    """
    return _draw(types, find_literals(source), number, seed)


@lru_cache(maxsize=1024)
def _draw(
    types: tuple[JavaType, ...],
    literals: tuple[tuple[int, ...], tuple[str, ...]],
    number: int,
    seed: int,
) -> list[tuple[str, bool]]:
    from hypothesis import strategies as st

    drawn = draw(st.tuples(*(_Strategies(*literals).of(kind) for kind in types)), number, seed)
    inputs = dict.fromkeys(" ".join(values) for values in drawn)
    return [(text, _is_large(text)) for text in inputs]


def _is_large(text: str) -> bool:
    """Return whether there is a large number in an input."""
    scalars = (word.partition(":") for word in text.split(" "))
    return any(kind in ("int", "long") and abs(int(value)) > LARGE for kind, _, value in scalars)


class _Strategies:
    """Strategies for the values of types, as text for the harness.

    Args:
        numbers: Ints that stand in the function.
        texts: Texts that stand in the function.
    """

    def __init__(self, numbers: tuple[int, ...], texts: tuple[str, ...]) -> None:
        self._numbers, self._texts = numbers, texts

    def of(self, kind: JavaType, nullable: bool = True) -> SearchStrategy[str]:
        """Return the strategy for a type.

        Args:
            kind: The type.
            nullable: Whether null is among the values.
        """
        from hypothesis import strategies as st

        if kind.name in _PRIMITIVES:
            return self._primitive(kind.name)
        values = self._objects(kind)
        # One of eight values is null: most functions do not accept null.
        return st.one_of(*[values] * 7, st.just("null")) if nullable else values

    def _primitive(self, name: str) -> SearchStrategy[str]:
        from hypothesis import strategies as st

        if name == "boolean":
            return st.sampled_from(["boolean:false", "boolean:true"])
        if name == "char":
            letters = sorted({letter for text in self._texts for letter in text if ord(letter) < 1 << 16})
            near = st.sampled_from(letters or ["a"])
            anything = st.sampled_from([letter for letter in CHARACTERS if ord(letter) < 1 << 16] + ["\0"])
            return (near | anything).map(lambda letter: f"char:{ord(letter)}")
        if name in ("float", "double"):
            corners = [0.0, -0.0, 1.0, -1.0, 0.5, *map(float, self._numbers)]
            special = [float("nan"), float("inf"), float("-inf"), 1e300 if name == "double" else 1e30]
            usual = st.floats(-100, 100, width=64 if name == "double" else 32)
            floats = st.sampled_from(corners) | st.sampled_from(special) | usual
            return floats.map(lambda value: f"{name}:{_java_float(value)}")
        low, high = -(1 << _BITS[name] - 1), (1 << _BITS[name] - 1) - 1
        corners = [n for n in (0, 1, -1, 2, *self._numbers) if low <= n <= high]
        ints = st.sampled_from(corners) | st.integers(-9, 20) | st.integers(0, 5) | st.integers(-100, 127)
        ints = ints | st.sampled_from([low, high]) | st.integers(low, high)
        return ints.map(lambda value: f"{name}:{value}")

    def _objects(self, kind: JavaType) -> SearchStrategy[str]:
        from hypothesis import strategies as st

        name, arguments = kind.name, kind.arguments
        if name in _BOXES:
            return self._primitive(_BOXES[name])
        if name in (*_TEXTS, "CharSequence"):
            written = "String" if name == "CharSequence" else name
            return self._text().map(lambda text: f"{written}:{quote(text, safe='')}")
        if name == "Comparable":
            return self._objects(*arguments) if arguments else self._primitive("int")
        if name == "Object":
            return self._objects(JavaType("String")) | self._primitive("int") | self._primitive("double")
        if name == "Number":
            return self._primitive("int") | self._primitive("double") | self._primitive("long")
        if name in ("BigInteger", "BigDecimal"):
            return st.sampled_from([0, 1, -1, *self._numbers, 1 << 70]).map(lambda value: f"{name}:{value}")
        if name == "Random":
            return st.integers(0, 9).map(lambda seed: f"Random:{seed}")
        if name == "Comparator":
            return st.just("Comparator 0")
        if name in _MAPS:
            key, value = arguments if len(arguments) == 2 else (JavaType("String"), JavaType("Integer"))
            pairs = st.tuples(self.of(key, nullable=False), self.of(value)).map(" ".join)
            return self._items(_MAPS[name], pairs, unique=True)
        if name == "[]":
            return self._items(kind.erased, self.of(arguments[0]))
        item = arguments[0] if arguments else JavaType("Integer")
        allows_null = name in ("List", "Collection", "Iterable", "ArrayList", "LinkedList", "Vector")
        container = (_SEQUENCES | _SETS)[name]
        return self._items(container, self.of(item, nullable=allows_null), unique=name in _SETS)

    def _items(
        self, container: str, items: SearchStrategy[str], unique: bool = False
    ) -> SearchStrategy[str]:
        from hypothesis import strategies as st

        lists = st.lists(items, max_size=_LONGEST, unique=unique)
        return lists.map(lambda values: " ".join([container, str(len(values)), *values]))

    def _text(self) -> SearchStrategy[str]:
        from hypothesis import strategies as st

        whole = ["", "a", "abba", "12", "-7", "a b c", *self._texts]
        parts = st.lists(st.sampled_from(["a", "b", " ", *self._texts]), max_size=_LONGEST).map("".join)
        return st.sampled_from(whole) | parts | st.text(CHARACTERS, max_size=8)


def _java_float(value: float) -> str:
    """Return a float as Java reads it."""
    return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(repr(value), repr(value))
