"""Mentions of parameters in the docstring of a Python function."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from simllm.perturb.code.code_unit import CodeUnit
from simllm.perturb.code.python.python_unit import field
from simllm.perturb.code.source_edits import Span

_HEADING = re.compile(rb"[ \t]*(?:Args|Arguments|Parameters):[ \t]*")


def docstring(function: Node) -> Node | None:
    """Return the docstring of a function, which may be several strings in a row; None if it has none."""
    first = next(child for child in field(function, "body").named_children if child.type != "comment")
    node = first.children[0] if first.type == "expression_statement" else first
    while node.type == "parenthesized_expression":
        node = next(child for child in node.named_children if child.type != "comment")
    return node if node.type in ("string", "concatenated_string") else None


def parameter_mentions(unit: CodeUnit, function: Node, name: str) -> Iterator[Span]:
    """Yield the ranges where a docstring describes a parameter: as `:param x:`, or under `Args:`."""
    node = docstring(function)
    if node is None:
        return
    text = unit.text_of(node)
    word = re.escape(name.encode())
    for match in re.finditer(rb":(?:param|type)[ \t]+(?:[\w.]+[ \t]+)?(" + word + rb"):", text):
        yield Span(node.start_byte + match.start(1), node.start_byte + match.end(1))
    entry = re.compile(rb"[ \t]*\*{0,2}(" + word + rb")(?:[ \t]*\([^()]*\))?:")
    at, heading, entries = 0, -1, -1  # widths of the indentation, or -1 outside a list
    for line in text.splitlines(keepends=True):
        width = len(line) - len(line.lstrip(b" \t"))
        if _HEADING.fullmatch(line.rstrip(b"\r\n")):
            heading, entries = width, -1
        elif line.strip() and width <= heading:
            heading = -1
        elif line.strip() and heading >= 0:
            entries = width if entries < 0 else entries
            if width == entries and (named := entry.match(line)):
                yield Span(node.start_byte + at + named.start(1), node.start_byte + at + named.end(1))
        at += len(line)
