"""Random arguments for Python functions, which fit the annotations of the parameters."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from simllm.perturb.code.proof.arguments import LARGE, DrawnValues

# Positional and keyword arguments as Python expressions, and whether one of them is a large number.
Input = tuple[list[str], dict[str, str], bool]
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
    """The signature of a Python function; an annotation that is missing is an empty text.

    Attributes:
        positional: The annotation of each positional parameter.
        required: The number of positional parameters without a default.
        rest: The annotation of `*args`; None if the function has no such parameter.
        keywords: Name and annotation of each keyword-only parameter, and whether it has a default.
        is_method: Whether the first parameter is named `self` or `cls`.
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
    """Return the signature of the function in a source; None if there is more than one function and imports.

    Raises:
        SyntaxError: The source has a syntax error.
    """
    body = [node for node in ast.parse(source).body if not isinstance(node, ast.Import | ast.ImportFrom)]
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
    # An annotation may itself be a string, so that it can name a later class.
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ast.unparse(node)


def draw_inputs(signature: PythonSignature, source: str, number: int, seed: int) -> list[Input]:
    """Draw distinct inputs for a function, which also use the literals in its source.

    If the type of a parameter is unknown, up to six times `number` are drawn, because many have wrong types.
    """
    known = all(annotation and _is_known(_parse(annotation)) for annotation in signature.annotations)
    values = _PythonValues(DrawnValues(source, seed))
    number = number if known else _MORE_CANDIDATES * number
    drawn = values.drawn.different(lambda: values.arguments(signature), number)
    return [(args, named, _is_large([*args, *named.values()])) for args, named in drawn]


def _is_large(expressions: list[str]) -> bool:
    """Return whether an argument is an integer above 10,000 in size, for which a loop may take very long."""
    return any(text.lstrip("-").isdigit() and abs(int(text)) > LARGE for text in expressions)


def _parse(annotation: str) -> ast.expr:
    try:
        return ast.parse(annotation, mode="eval").body
    except SyntaxError:  # a text that is no annotation
        return ast.Name("unknown")


def _name_and_arguments(node: ast.expr) -> tuple[str, list[ast.expr]]:
    """Return the name and the type arguments of an annotated type.

    The name has no module, and is that of the builtin type: `typing.List[int]` gives "list" and `int`.
    `A | B` gives "Union".
    """
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


class _PythonValues:
    """Random values of Python types, written as Python expressions."""

    def __init__(self, drawn: DrawnValues) -> None:
        self.drawn = drawn

    def arguments(self, signature: PythonSignature) -> tuple[list[str], dict[str, str]]:
        """Draw positional and keyword arguments of one call; a parameter with a default may get none."""
        # Parameters without a known type often need the same type, such as both operands of `+`.
        common = self.drawn.choice(_ANYTHING) if self.drawn.chance(0.5) else ""
        count = self.drawn.choice(range(signature.required, len(signature.positional) + 1))
        wanted = list(signature.positional[:count])
        if signature.rest is not None and count == len(signature.positional):
            wanted += [signature.rest] * self.drawn.choice(range(4))
        positional = [self._argument(annotation, common) for annotation in wanted]
        named = {
            name: self._argument(annotation, common)
            for name, annotation, optional in signature.keywords
            if not optional or self.drawn.chance(0.5)
        }
        return positional, named

    def _argument(self, annotation: str, common: str) -> str:
        node = _parse(annotation or "Any")
        if not _is_known(node) or _name_and_arguments(node)[0] in ("Any", "object"):
            node = _parse(common or self.drawn.choice(_ANYTHING))
        return self._value(node)

    def _value(self, node: ast.expr) -> str:
        name, arguments = _name_and_arguments(node)
        if name == "Literal":
            return ast.unparse(self.drawn.choice(arguments))
        if name == "Optional" and self.drawn.chance(0.25):
            return "None"
        if name in ("Optional", "Union"):
            return self._value(self.drawn.choice(arguments))
        if name == "tuple" and arguments and not any(map(_is_ellipsis, arguments)):
            return f"({', '.join(map(self._value, arguments))},)"
        if name == "dict":
            key, value = arguments if len(arguments) == 2 else (ast.Name("str"), ast.Name("int"))
            items = self.drawn.items(lambda: f"{self._value(key)}: {self._value(value)}")
            return f"{{{', '.join(items)}}}"
        if name in (*_CONTAINERS, "tuple"):
            item = arguments[0] if arguments else ast.Name("int")
            text = f"[{', '.join(self.drawn.items(lambda: self._value(item)))}]"
            return text if name == "list" else f"{'iter' if name == 'Iterator' else name}({text})"
        return self._scalar(name)

    def _scalar(self, name: str) -> str:
        if name == "int":
            return str(self.drawn.integer())
        if name == "str":
            return repr(self.drawn.text())
        if name == "float":
            return repr(self.drawn.number())
        if name == "bool":
            return self.drawn.choice(("False", "True"))
        if name == "bytes":
            return repr(self.drawn.text().encode())
        return "None" if name == "None" else self._value(_parse(self.drawn.choice(_ANYTHING)))
