"""Seeded inputs for Python functions, from annotations where there are some."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from simllm.perturb.code.proof.drawn_values import CHARACTERS, LARGE, draw, find_literals

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

Input = tuple[list[str], dict[str, str], bool]
_LONGEST = 6  # items of a container
_SAME_NAMES = {"List": "list", "Sequence": "list", "Iterable": "list", "Collection": "list"}
_SAME_NAMES |= {"MutableSequence": "list", "Dict": "dict", "Mapping": "dict", "MutableMapping": "dict"}
_SAME_NAMES |= {"Set": "set", "AbstractSet": "set", "FrozenSet": "frozenset", "Tuple": "tuple"}
_SAME_NAMES |= {"Text": "str", "AnyStr": "str", "Generator": "Iterator"}
_CONTAINERS = ("list", "set", "frozenset", "Iterator")
_ANYTHING = ["int", "int", "str", "str", "list[int]", "list[int]", "list[str]", "float", "bool", "None"]
_ANYTHING += ["dict[str, int]", "set[int]", "tuple[int, int]", "list[list[int]]"]
_MORE_CANDIDATES = 6  # for parameters without a known type, since most values do not fit


@dataclass(frozen=True)
class PythonSignature:
    """How a function is called.

    Attributes:
        name: The name of the function.
        positional: The annotation of each positional parameter; empty if there is none.
        required: The number of positional parameters without a default.
        rest: The annotation of `*args`; None if there is no such parameter.
        keywords: The annotation of each keyword-only parameter, and whether it has a default.
        is_method: Whether the first parameter is `self` or `cls`.
    """

    name: str
    positional: tuple[str, ...]
    required: int
    rest: str | None
    keywords: tuple[tuple[str, str, bool], ...]
    is_method: bool

    @property
    def annotations(self) -> tuple[str, ...]:
        """The annotations of all parameters."""
        rest = () if self.rest is None else (self.rest,)
        return (*self.positional, *rest, *(annotation for _, annotation, _ in self.keywords))


def find_signature(source: str) -> PythonSignature | None:
    """Return how a function is called; None if the source is not a single function.

    Raises:
        SyntaxError: The source has a syntax error.
    """
    body = ast.parse(source).body
    if len(body) != 1 or not isinstance(body[0], ast.FunctionDef | ast.AsyncFunctionDef):
        return None
    given = body[0].args
    positional = [*given.posonlyargs, *given.args]
    return PythonSignature(
        body[0].name,
        tuple(map(_annotation, positional)),
        len(positional) - len(given.defaults),
        _annotation(given.vararg) if given.vararg else None,
        tuple(
            (parameter.arg, _annotation(parameter), default is not None)
            for parameter, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)
        ),
        bool(positional) and positional[0].arg in ("self", "cls"),
    )


def _annotation(parameter: ast.arg) -> str:
    if parameter.annotation is None:
        return ""
    node = parameter.annotation
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ast.unparse(node)


def unknown_types(signature: PythonSignature) -> list[str]:
    """Return the annotations for which values of any type are tried."""
    written = [annotation for annotation in signature.annotations if annotation]
    return [annotation for annotation in written if not _is_known(_parse(annotation))]


def draw_inputs(signature: PythonSignature, source: str, number: int, seed: int) -> list[Input]:
    """Draw inputs for a function.

    Args:
        signature: How the function is called.
        source: The function; its literals become inputs, too.
        number: The number of inputs that have to count. There are more candidates if a type is not known.
        seed: The seed of the choice.

    Returns:
        Different inputs: the expressions of the positional and of the keyword arguments, and whether there
        is a large number among them.
    """
    return _draw(signature, find_literals(source), number, seed)


@lru_cache(maxsize=1024)
def _draw(
    signature: PythonSignature,
    literals: tuple[tuple[int, ...], tuple[str, ...]],
    number: int,
    seed: int,
) -> list[Input]:
    known = all(annotation and _is_known(_parse(annotation)) for annotation in signature.annotations)
    strategy = _Strategies(*literals).call(signature)
    drawn = draw(strategy, number if known else _MORE_CANDIDATES * number, seed)
    unique = {repr(values): values for values in drawn}
    return [(args, named, _is_large([*args, *named.values()])) for args, named in unique.values()]


def _is_large(expressions: list[str]) -> bool:
    """Return whether an argument is a large number."""
    return any(text.lstrip("-").isdigit() and abs(int(text)) > LARGE for text in expressions)


def _parse(annotation: str) -> ast.expr:
    try:
        return ast.parse(annotation, mode="eval").body
    except SyntaxError:  # a text that is no annotation
        return ast.Name("unknown")


def _name_and_arguments(node: ast.expr) -> tuple[str, list[ast.expr]]:
    """Return the name of a type without its module, and its type arguments."""
    arguments: list[ast.expr] = []
    if isinstance(node, ast.Subscript):
        arguments = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        node = node.value
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return "Union", [node.left, node.right]
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    if isinstance(node, ast.Constant):
        name = str(node.value)
    return _SAME_NAMES.get(name, name), arguments


def _is_known(node: ast.expr) -> bool:
    name, arguments = _name_and_arguments(node)
    if name in ("int", "str", "float", "bool", "None", "bytes", "Any", "object", "Literal"):
        return True
    if name in (*_CONTAINERS, "dict", "tuple", "Union", "Optional"):
        return all(_is_ellipsis(argument) or _is_known(argument) for argument in arguments)
    return False


def _is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...


class _Strategies:
    """Strategies for the values of types, as Python expressions.

    Args:
        numbers: Ints that stand in the function.
        texts: Texts that stand in the function.
    """

    def __init__(self, numbers: tuple[int, ...], texts: tuple[str, ...]) -> None:
        self._numbers, self._texts = numbers, texts

    def call(self, signature: PythonSignature) -> SearchStrategy[tuple[list[str], dict[str, str]]]:
        """Return the strategy for the arguments of a function.

        In half of the calls, all parameters without a known type have values of one type.
        """
        from hypothesis import strategies as st

        @st.composite
        def arguments(pick: st.DrawFn) -> tuple[list[str], dict[str, str]]:
            unknown = pick(st.sampled_from([*_ANYTHING, *[""] * len(_ANYTHING)]))
            most = len(signature.positional)
            count = pick(st.integers(signature.required, most)) if most > signature.required else most
            wanted = list(signature.positional[:count])
            if signature.rest is not None and count == most:
                wanted += [signature.rest] * pick(st.integers(0, 3))
            positional = [pick(self.of(annotation, unknown)) for annotation in wanted]
            named = {
                name: pick(self.of(annotation, unknown))
                for name, annotation, optional in signature.keywords
                if not optional or pick(st.booleans())
            }
            return positional, named

        return arguments()

    def of(self, annotation: str, unknown: str = "") -> SearchStrategy[str]:
        """Return the strategy for an annotation.

        Args:
            annotation: The annotation; empty if there is none.
            unknown: The annotation that stands for those that are not known; empty for any.
        """
        node = _parse(annotation or "Any")
        name, _ = _name_and_arguments(node)
        if not _is_known(node) or name in ("Any", "object"):
            return self._type(_parse(unknown)) if unknown else self._anything()
        return self._type(node)

    def _anything(self) -> SearchStrategy[str]:
        from hypothesis import strategies as st

        return st.sampled_from(_ANYTHING).flatmap(lambda annotation: self._type(_parse(annotation)))

    def _type(self, node: ast.expr) -> SearchStrategy[str]:
        from hypothesis import strategies as st

        name, arguments = _name_and_arguments(node)
        inner = [self._type(argument) for argument in arguments if not _is_ellipsis(argument)]
        if name == "Union":
            return st.one_of(inner)
        if name == "Optional":
            return st.one_of(*inner * 3, st.just("None"))
        if name == "Literal":
            return st.sampled_from([ast.unparse(argument) for argument in arguments])
        if name == "tuple" and inner and not any(map(_is_ellipsis, arguments)):
            return st.tuples(*inner).map(lambda items: f"({', '.join(items)},)")
        if name == "dict":
            pair = inner if len(inner) == 2 else [self._text(), self._int()]
            pairs = st.lists(st.tuples(*pair).map(": ".join), max_size=_LONGEST)
            return pairs.map(lambda items: f"{{{', '.join(items)}}}")
        if name in (*_CONTAINERS, "tuple"):
            lists = st.lists(inner[0] if inner else self._int(), max_size=_LONGEST)
            function = {"Iterator": "iter"}.get(name, name)
            texts = lists.map(lambda items: f"[{', '.join(items)}]")
            return texts if name == "list" else texts.map(lambda text: f"{function}({text})")
        return self._scalar(name)

    def _scalar(self, name: str) -> SearchStrategy[str]:
        from hypothesis import strategies as st

        if name == "bool":
            return st.sampled_from(["False", "True"])
        if name == "None":
            return st.just("None")
        if name == "float":
            corners = ["0.0", "-0.0", "0.5", "nan", "inf", "-inf", "1e300", *(f"{n}.0" for n in self._numbers)]
            return st.sampled_from(corners) | st.floats(-100, 100).map(repr)
        if name == "bytes":
            return st.binary(max_size=_LONGEST).map(repr)
        if name == "str":
            return self._text()
        return self._int() if name == "int" else self._anything()

    def _int(self) -> SearchStrategy[str]:
        from hypothesis import strategies as st

        corners = st.sampled_from([0, 1, -1, 2, *self._numbers])
        ints = corners | st.integers(-9, 20) | st.integers(0, 5) | st.integers(-100, 1000)
        return (ints | st.integers(-(1 << 70), 1 << 70)).map(str) if not self._numbers else ints.map(str)

    def _text(self) -> SearchStrategy[str]:
        from hypothesis import strategies as st

        whole = ["", "a", "abba", "12", "-7", "a b c", *self._texts]
        parts = st.lists(st.sampled_from(["a", "b", " ", *self._texts]), max_size=_LONGEST).map("".join)
        return (st.sampled_from(whole) | parts | st.text(CHARACTERS, max_size=8)).map(repr)
