"""Parsed Java code, and helpers to find and read nodes of its syntax tree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property

from tree_sitter import Node, Query, QueryCursor

from simllm.code.languages.language import find_language, load_grammar
from simllm.errors import InputError
from simllm.perturb.code.edits import Span
from simllm.perturb.code.java.scopes import Scopes, Variable
from simllm.perturb.code.units import CodeUnit

# Text that ends a literal or comment for Java, but not for tree-sitter. Java replaces Unicode escapes such as
# \u0022, a quotation mark, before it parses; and a lone carriage return ends a line.
_MEANT = {
    "line_comment": re.compile(rb"\r[^\n]|\\u+000[aAdD]"),
    "block_comment": re.compile(rb"\\u+002[aAfF]"),
    "string_literal": re.compile(rb"\\u+00(?:0[aAdD]|22|5[cC])"),
    "character_literal": re.compile(rb"\\u+00(?:0[aAdD]|27|5[cC])"),
}
_FRAME = (b"class Unit {\n", b"\n}\n")  # put around a single function, to make it a file
_TYPES = ("class_declaration", "interface_declaration", "enum_declaration", "record_declaration")
_MEMBERS = ("method_declaration", "constructor_declaration")
_FILE = frozenset(
    "package_declaration import_declaration module_declaration class_declaration interface_declaration "
    "enum_declaration record_declaration annotation_type_declaration".split()
)


@dataclass(frozen=True)
class JavaUnit(CodeUnit):
    """Parsed Java code: a file, a method or a constructor."""

    @cached_property
    def scopes(self) -> Scopes:
        """The variables of the code, and the variable to which each identifier refers."""
        return Scopes(self.root, self.text)

    @cached_property
    def hides_string(self) -> bool:
        """Whether the code declares a type with the name `String`, which need not behave like Java's."""
        if self.text.count(b"String") == 0:
            return False
        named = [node.child_by_field_name("name") for node in find_nodes(self.root, *_TYPES)]
        named += [node.named_children[0] for node in find_nodes(self.root, "type_parameter")]
        return any(node is not None and node.text == b"String" for node in named)


def parse(source: bytes, is_file: bool = False, around: bytes = b"") -> JavaUnit:
    """Parse a Java file or, unless `is_file`, a single method or constructor.

    `around` has further members of the method's class; they become a part of the frame. Any other source
    raises `InputError` with a message that begins with `line N: `.
    """
    java = find_language("java")
    root = java.parse(source)
    _check_characters(source, root)
    # tree-sitter also accepts statements and methods without a class around, which are no file.
    if not root.has_error and any(child.type in _FILE for child in root.named_children):
        return JavaUnit("java", source, Span(0, len(source)), root, is_function=False)
    if is_file:
        line = _first_error(root).start_point.row + 1 if root.has_error else 1
        raise InputError(f"line {line}: syntax error; expected a whole Java file")
    before, after = _FRAME
    text = before + source + after
    frame = java.parse(text)
    if frame.has_error:
        # Whichever reading of the source gets further names the likelier line. The frame has one line before
        # the source.
        lines = (_first_error(root).start_point.row + 1, _first_error(frame).start_point.row)
        raise InputError(f"line {max(1, *lines)}: syntax error; expected a Java file, method or constructor")
    members = [member for body in find_nodes(frame, "class_body")[-1:] for member in children(body)]
    if frame.named_child_count > 1 or len(members) != 1 or members[0].type not in _MEMBERS:
        raise InputError("line 1: expected a Java file, or exactly one method or constructor")
    if around:
        before += around + b"\n"
        text = before + source + after
        frame = java.parse(text)
        if frame.has_error or frame.named_child_count > 1:
            raise InputError(
                "line 1: the code under around cannot be parsed with it; expected members of a class"
            )
        _check_characters(text, frame)
    span = Span(len(before), len(before) + len(source))
    return JavaUnit("java", text, span, frame, is_function=True)


def _check_characters(source: bytes, root: Node) -> None:
    """Reject code in which Java ends a literal or comment earlier than the parser tree-sitter does."""
    # Almost no code has such text, and the search of the whole tree is slow.
    if b"\\u" not in source and b"\r" not in source.replace(b"\r\n", b""):
        return
    for node in find_nodes(root, *_MEANT):
        # After two backslashes, a `u` is a letter.
        text = re.sub(rb"\\\\", b"  ", node.text or b"")
        if _MEANT[node.type].search(text):
            line = node.start_point.row + 1
            raise InputError(f"line {line}: a literal or comment holds a line end or an escape that ends it")


def _first_error(root: Node) -> Node:
    """Return the node of the first syntax error; the last leaf if there is no error."""
    node = root
    while not (node.is_error or node.is_missing) and node.children:
        # The deepest node with an error names its line best.
        node = next((child for child in node.children if child.has_error), node.children[-1])
    return node


@cache
def _node_query(pattern: str) -> Query:
    return Query(load_grammar("tree_sitter_java", "language"), pattern)


def find_nodes(root: Node, *types: str) -> list[Node]:
    """Return all syntax nodes of the given types in a tree; inner nodes come before the nodes around them."""
    pattern = "[" + " ".join(f"({kind})" for kind in types) + "] @node"
    nodes = QueryCursor(_node_query(pattern)).captures(root).get("node", [])
    return sorted(nodes, key=lambda node: (node.end_byte, -node.start_byte))


def field_child(node: Node, name: str) -> Node | None:
    """Return the child with a given role, such as "condition", that is no comment; None if there is none."""
    for child in node.children_by_field_name(name):
        if "comment" not in child.type:
            return child
    return None


def required(node: Node, name: str) -> Node:
    """Return the child with a given role that the grammar guarantees, such as the "body" of a loop."""
    child = field_child(node, name)
    assert child is not None, f"{node.type} without {name}"
    return child


def children(node: Node) -> list[Node]:
    """Return the children without comments, keywords, operators and punctuation marks."""
    return [child for child in node.named_children if "comment" not in child.type]


def has_comment(nodes: list[Node]) -> bool:
    """Return whether at least one of the given syntax nodes is a comment."""
    return any("comment" in node.type for node in nodes)


def walk(node: Node, *, not_into: frozenset[str] = frozenset()) -> Iterator[Node]:
    """Yield a syntax node and all nodes below it, except those below nodes of the types `not_into`.

    Each node comes before its children.
    """
    stack = [node]
    while stack:
        node = stack.pop()
        yield node
        if node.type not in not_into:
            stack += reversed(node.children)


def without_parentheses(node: Node) -> Node:
    """Return the expression inside any number of parentheses."""
    while node.type == "parenthesized_expression":
        node = children(node)[0]
    return node


def variable_of(unit: JavaUnit, node: Node) -> Variable | None:
    """Return the variable that `i` or `this.i` means; None for other expressions and unknown declarations."""
    node = without_parentheses(node)
    if node.type == "field_access" and required(node, "object").type == "this":
        name = unit.text_of(required(node, "field")).decode()
        body = node.parent
        # `this` is the object of the innermost class around.
        while body is not None and body.id not in unit.scopes.fields:
            body = body.parent
        return unit.scopes.fields[body.id].get(name) if body is not None else None
    return unit.scopes.meaning.get(node.start_byte) if node.type == "identifier" else None


def assigned_variables(unit: JavaUnit, node: Node) -> Iterator[Variable | None]:
    """Yield the target of each assignment and increment in a syntax node; None if it is no known variable."""
    for part in walk(node):
        if part.type == "assignment_expression":
            yield variable_of(unit, required(part, "left"))
        elif part.type == "update_expression":
            yield variable_of(unit, children(part)[0])
