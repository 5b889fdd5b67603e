"""Documented functions, with the facts of their code that a comment may speak of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from simllm.code.languages.language import field_text, load_language, text
from simllm.code.normal_form import code_tokens

_NESTED = re.compile(
    r"function_(?:definition|declaration|expression)|generator_function(?:_declaration)?|arrow_function|lambda\w*"
    r"|method(?:_declaration|_definition)?|class\w*|anonymous_function\w*|func_literal"
)
_RETURNS = ("return_statement", "co_return_statement")
_YIELDS = ("yield", "yield_expression", "co_yield_statement")
_THROWS = ("raise_statement", "throw_statement", "throw_expression", "throws")
# These say nothing about what the code does.
_TYPES = ("type_annotation", "decorator", "marker_annotation", "annotation", "attribute_list", "modifiers")
_REST = re.compile(r"\w*splat\w*|rest_pattern|spread_parameter|variadic\w*|block_parameter|forward_parameter")
_UNNAMED = ("object_pattern", "array_pattern", "destructured_parameter", "tuple_pattern")
_MARKS = ("keyword_separator", "positional_separator", "receiver_parameter", "comment", "self_parameter")
_NAMES = ("identifier", "variable_name", "shorthand_property_identifier_pattern")
_LAYOUT = frozenset({*"();,", "final", "const", "let", "var"})
_WORD = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True)
class Parameter:
    """A parameter of a function.

    Attributes:
        name: Its name without sigils; "" if it is taken apart in the signature, as in JavaScript's `{a, b}`.
        default: The source of its default value; "" without one.
        is_rest: Whether it takes any number of arguments.
    """

    name: str
    default: str
    is_rest: bool


@dataclass(frozen=True)
class CheckedFunction:
    """A function with its documentation comment and the facts about its code.

    Attributes:
        name: The full name, such as `Class.method`.
        comment: The documentation comment as it stands in the file, with its marks.
        line: The first line of the comment in the file, from 1.
        code: The source of the function. In Python, it includes the comment.
        tokens: The tokens of the code without comments, types, and marks that are only layout.
        parameters: None if the parameters are not known.
        type_parameters: The names of its type parameters, as in Java's `<T>`.
        returns: Whether it returns a value; None if that is not known.
        raised: The words in the statements and clauses that throw exceptions.
        calls: The names of the functions that it calls.
        decorators: The words of its decorators.
        has_inner: Whether there are functions or classes in its body.
    """

    name: str
    language: str
    comment: str
    line: int
    code: str
    tokens: tuple[str, ...]
    parameters: tuple[Parameter, ...] | None
    type_parameters: frozenset[str]
    returns: bool | None
    raised: frozenset[str]
    calls: frozenset[str]
    decorators: frozenset[str]
    has_inner: bool

    @property
    def own_name(self) -> str:
        """The name without those of classes."""
        return self.name.rpartition(".")[2]

    def mentions(self, value: str) -> bool:
        """Return whether a name, a number or a text occurs in the code."""
        around = (r"(?<![\w.])" if value[:1].isdigit() else r"(?<!\w)", r"(?![\w])")
        pattern = re.escape(value).replace(r"\-", r"-\s?")
        return bool(re.search(f"{around[0] if value[:1].isalnum() else ''}{pattern}{around[1]}", self.joined))

    @property
    def joined(self) -> str:
        """The tokens in a row, with blanks between them."""
        return " ".join(self.tokens)


@dataclass(frozen=True)
class FoundFunction:
    """A documented function whose code has not been read yet; see `CheckedFunction`."""

    name: str
    language: str
    comment: str
    line: int
    code: str
    _node: Node
    _file: bytes

    def read(self) -> CheckedFunction:
        """Return the function with the facts about its code."""
        given = (self.name, self.language, self.comment, self.line, self.code)
        return _read(self._node, self._file, self.language, given)


def documented_functions(code: bytes, language: str) -> list[FoundFunction]:
    """Return the functions of a file that have a documentation comment, in the order of the comments.

    TimeoutError if parsing takes too long.
    """
    code = code.replace(b"\r\n", b"\n")
    rules = load_language(language)
    found = []
    for path, place in rules.documented(code):
        described, node = rules.describe(path, code, place), path[-1]
        line = code.count(b"\n", 0, place.start) + 1
        found.append(FoundFunction(described.name, language, described.raw, line, text(node), node, code))
    return found


def _read(node: Node, code: bytes, language: str, given: tuple[str, str, str, int, str]) -> CheckedFunction:
    body = _field(node, "body")
    inside = list(_inside(body)) if body else []
    thrown = [each for each in (*inside, *node.children) if each.type in _THROWS]
    # In Ruby, `raise` is a call.
    raises = [
        each for each in inside if each.type == "call" and field_text(each, "method") in ("raise", "fail")
    ]
    types = _field(node, "type_parameters") or _type_parameters(node)
    return CheckedFunction(
        *given,
        tokens=tuple(_tokens(node, code, language)),
        parameters=_parameters(node, language),
        type_parameters=frozenset(_WORD.findall(text(types))) if types else frozenset(),
        returns=_returns(node, body, inside, language),
        raised=frozenset(word for each in (*thrown, *raises) for word in _WORD.findall(text(each))),
        calls=frozenset(filter(None, map(_called, inside))),
        decorators=frozenset(word for each in _decorators(node) for word in _WORD.findall(text(each))),
        has_inner=any(_NESTED.fullmatch(child.type) for each in inside for child in each.named_children),
    )


def _decorators(node: Node) -> list[Node]:
    outer = node.parent if node.parent and node.parent.type == "decorated_definition" else node
    return [child for child in outer.children if child.type == "decorator"]


def _field(node: Node, name: str) -> Node | None:
    """Find the child in a field, or that of the nearest node inside the declaration but outside its body."""
    nodes = [node]
    for here in nodes:
        if child := here.child_by_field_name(name):
            return child
        # Functions in the body have fields of their own.
        body = here.child_by_field_name("body") if name != "body" else None
        nodes += [child for child in here.named_children if child != body and child.type not in _TYPES]
        if len(nodes) > 500:  # data rather than a declaration
            return None
    return None


def _type_parameters(node: Node) -> Node | None:
    """Return the parameters of a C++ template."""
    outer = node if node.type == "template_declaration" else node.parent
    return outer.child_by_field_name("parameters") if outer and outer.type == "template_declaration" else None


def _inside(node: Node) -> Iterator[Node]:
    """Yield the nodes of a function's body, without functions and classes inside it."""
    stack = [node]
    while stack:
        here = stack.pop()
        yield here
        stack += [child for child in here.children if not (child.is_named and _NESTED.fullmatch(child.type))]


def _tokens(node: Node, code: bytes, language: str) -> Iterator[str]:
    """Yield the tokens of a function, without layout, types that may be left out, and annotations."""
    skipped = [
        each for each in _all(node) if each.type in _TYPES or (language == "python" and each.type == "type")
    ]
    ends = dict[int, int]()
    for each in skipped:
        # The colon or arrow before a type belongs to the type.
        mark = each.prev_sibling
        start = mark.start_byte if mark and mark.type in (":", "->") else each.start_byte
        ends[start] = max(each.end_byte, ends.get(start, -1))
    end = -1
    for token, leaf, kind, _ in code_tokens(node, code, language):
        end = max(end, ends.get(leaf.start_byte, -1))
        word = token.decode(errors="replace")
        if leaf.start_byte >= end and word not in _LAYOUT and "doc" not in kind:
            # Quotes do not matter.
            yield re.sub(r"\A(\w{0,2})'([^'\"\\]*)'\Z", r'\1"\2"', word)


def _all(node: Node) -> Iterator[Node]:
    stack = [node]
    while stack:
        here = stack.pop()
        yield here
        stack += here.named_children


def _parameters(node: Node, language: str) -> tuple[Parameter, ...] | None:
    if node.type == "compact_constructor_declaration":  # its parameters stand in the head of the record
        return None
    if node.type == "template_declaration" and node.named_children:
        node = node.named_children[-1]  # its own parameters are types
    listed = _field(node, "parameters")
    if not listed:
        # In Ruby and JavaScript, the list may be absent.
        single = _field(node, "parameter")
        return (_parameter(single),) if single else (() if language == "ruby" else None)
    children = [child for child in listed.named_children if child.type not in _MARKS]
    if language == "cpp" and [text(child) for child in children] == ["void"]:
        return ()
    parameters = [_parameter(child) for child in children]
    if language == "cpp" and any(child.type == "..." for child in listed.children):
        parameters.append(Parameter("", "", True))
    return tuple(parameters)


def _parameter(node: Node) -> Parameter:
    fields = ("name", "pattern", "declarator", "left")
    inner = next((child for name in fields if (child := node.child_by_field_name(name))), node)
    value = next(
        (child for name in ("value", "default_value", "right") if (child := node.child_by_field_name(name))),
        None,
    )
    leaf = _first_name(inner)
    is_rest = any(each and _REST.fullmatch(each.type) for each in (node, inner, *node.named_children[:1]))
    return Parameter(text(leaf).lstrip("$@&*") if leaf else "", text(value) if value else "", is_rest)


def _first_name(node: Node) -> Node | None:
    """Return the first identifier in a parameter; None if the parameter is taken apart, or has no name."""
    if node.type in _NAMES:
        return node
    if node.type in _UNNAMED:
        return None
    for child in node.named_children:
        if child.type not in (*_TYPES, "type") and (found := _first_name(child)):
            return found
    return None


def _returns(node: Node, body: Node | None, inside: list[Node], language: str) -> bool | None:
    """Return whether a function returns a value; None if its code does not tell."""
    declared = text(_field(node, "return_type") or node).strip(": ") if _field(node, "return_type") else ""
    if language in ("java", "cpp"):
        kind, declarator = _field(node, "type"), _field(node, "declarator")
        # A pointer to nothing is a value.
        is_void = (
            kind
            and text(kind) == "void"
            and (language == "java" or not declarator or "pointer" not in declarator.type)
        )
        return False if is_void else None
    if language in ("ruby", "go") or not body:
        return None
    if declared and re.fullmatch(r"void|never|undefined|None|NoReturn", declared):
        return False
    if declared:
        return None
    if body.type not in ("block", "statement_block", "compound_statement"):
        return True  # the expression of an arrow function
    statements = [child for child in body.named_children if "comment" not in child.type]
    if language == "python":
        statements = [
            child
            for child in statements
            if child.type != "pass_statement"
            and [c.type for c in child.named_children] not in (["string"], ["ellipsis"])
        ]
    # A body that only throws belongs to an abstract function.
    last = statements[-1] if statements else None
    if last is None or last.type in _THROWS or any(child.type in _THROWS for child in last.children):
        return None
    if any(each.type in _YIELDS for each in inside):
        return True
    return any(each.type in _RETURNS and each.named_children for each in inside)


def _called(node: Node) -> str:
    """Return the name of the function that a node calls; "" for another node."""
    if node.type not in ("call", "call_expression", "method_invocation", "function_call_expression") and not (
        node.type.endswith("_call_expression")
    ):
        return ""
    names = (node.child_by_field_name(name) for name in ("name", "method", "function"))
    words = _WORD.findall(text(called)[-200:]) if (called := next(filter(None, names), None)) else []
    return words[-1] if words else ""
