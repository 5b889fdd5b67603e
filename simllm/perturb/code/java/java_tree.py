"""Parsed Java code, and the ways to move in its syntax tree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property

from tree_sitter import Node, Query, QueryCursor

from simllm.code import languages
from simllm.code.languages.base import load_grammar
from simllm.errors import InputError
from simllm.perturb.code.code_unit import CodeUnit
from simllm.perturb.code.java.java_scopes import JavaScopes
from simllm.perturb.code.source_edits import Span

_MEANT = {  # characters that end a literal or comment, as Unicode escapes, which Java replaces beforehand
    "line_comment": re.compile(rb"\r[^\n]|\\u+000[aAdD]"),
    "block_comment": re.compile(rb"\\u+002[aAfF]"),
    "string_literal": re.compile(rb"\\u+00(?:0[aAdD]|22|5[cC])"),
    "character_literal": re.compile(rb"\\u+00(?:0[aAdD]|27|5[cC])"),
}
_FRAME = (b"class Unit {\n", b"\n}\n")  # what makes a file of a function
_MEMBERS = ("method_declaration", "constructor_declaration")
_FILE = frozenset(
    "package_declaration import_declaration module_declaration class_declaration interface_declaration "
    "enum_declaration record_declaration annotation_type_declaration".split()
)


@dataclass(frozen=True)
class JavaUnit(CodeUnit):
    """A Java file or function, parsed."""

    @cached_property
    def scopes(self) -> JavaScopes:
        """The local variables of the unit and their uses."""
        return JavaScopes(self.root, self.text)


def parse(source: bytes) -> JavaUnit:
    """Parse a Java file, method or constructor.

    Raises:
        InputError: The source has a syntax error. The message begins with the line.
    """
    java = languages.find("java")
    root = java.parse(source)
    _check_characters(source, root)
    if not root.has_error and any(child.type in _FILE for child in root.named_children):
        return JavaUnit("java", source, Span(0, len(source)), root, is_function=False)
    before, after = _FRAME
    text = before + source + after
    frame = java.parse(text)
    if frame.has_error:
        lines = (_first_error(root).start_point.row + 1, _first_error(frame).start_point.row)
        raise InputError(f"line {max(1, *lines)}: syntax error; expected a Java file, method or constructor")
    members = [member for body in find_nodes(frame, "class_body")[-1:] for member in children(body)]
    if frame.named_child_count > 1 or len(members) != 1 or members[0].type not in _MEMBERS:
        raise InputError("line 1: expected a Java file, or exactly one method or constructor")
    span = Span(len(before), len(before) + len(source))
    return JavaUnit("java", text, span, frame, is_function=True)


def _check_characters(source: bytes, root: Node) -> None:
    """Refuse a literal or comment that ends earlier for Java than for the parser.

    Raises:
        InputError: There is such a literal or comment.
    """
    if b"\\u" not in source and b"\r" not in source.replace(b"\r\n", b""):
        return
    for node in find_nodes(root, *_MEANT):
        text = re.sub(rb"\\\\", b"  ", node.text or b"")  # the `u` after two backslashes is a letter
        if _MEANT[node.type].search(text):
            line = node.start_point.row + 1
            raise InputError(f"line {line}: a literal or comment holds a line end or an escape that ends it")


def _first_error(root: Node) -> Node:
    """Return the first syntax error in a tree; the last node if there is none."""
    node = root
    while not (node.is_error or node.is_missing) and node.children:
        node = next((child for child in node.children if child.has_error), node.children[-1])
    return node


@cache
def _query(pattern: str) -> Query:
    """Compile a tree-sitter query."""
    return Query(load_grammar("tree_sitter_java", "language"), pattern)


def find_nodes(root: Node, *types: str) -> list[Node]:
    """Return all nodes of some types in a tree; inner nodes come before the nodes around them."""
    pattern = "[" + " ".join(f"({kind})" for kind in types) + "] @node"
    nodes = QueryCursor(_query(pattern)).captures(root).get("node", [])
    return sorted(nodes, key=lambda node: (node.end_byte, -node.start_byte))


def field(node: Node, name: str) -> Node | None:
    """Return the child of a node in a field of the grammar, never a comment; None without one."""
    for child in node.children_by_field_name(name):
        if "comment" not in child.type:
            return child
    return None


def required(node: Node, name: str) -> Node:
    """Return the child in a field that the grammar requires."""
    child = field(node, name)
    assert child is not None, f"{node.type} without {name}"
    return child


def children(node: Node) -> list[Node]:
    """Return the named children that are no comments."""
    return [child for child in node.named_children if "comment" not in child.type]


def span_of(node: Node) -> Span:
    """Return the range of a node."""
    return Span(node.start_byte, node.end_byte)


def has_comment(nodes: list[Node]) -> bool:
    """Return whether one of the nodes is a comment."""
    return any("comment" in node.type for node in nodes)


def walk(node: Node, *, not_into: frozenset[str] = frozenset()) -> Iterator[Node]:
    """Yield a node and all nodes below it, from the first to the last.

    Args:
        node: The node.
        not_into: Types of nodes whose children are left out; the nodes themselves are yielded.
    """
    stack = [node]
    while stack:
        node = stack.pop()
        yield node
        if node.type not in not_into:
            stack += reversed(node.children)


def without_parentheses(node: Node) -> Node:
    """Return the expression inside all parentheses around it."""
    while node.type == "parenthesized_expression":
        node = children(node)[0]
    return node
