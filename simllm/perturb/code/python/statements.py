"""The rules expand-increment, expand-compound, remove-comments and dead-code for Python.

expand-increment rewrites only `n += 1` and `n -= 1`, for integers. expand-compound rewrites any operator,
such as `x <<= e`, for integers and other immutable values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from simllm.perturb.code.edits import Edit
from simllm.perturb.code.python.parsing import (
    captures,
    children,
    is_inline,
    line_end,
    line_start,
    required,
    starts_line,
    token,
)
from simllm.perturb.code.python.renaming import docstring
from simllm.perturb.code.python.scopes import Scopes
from simllm.perturb.code.python.types import LocalValues
from simllm.perturb.code.units import CodeUnit, Site, SkippedSite, span_of

_ATOMS = frozenset("identifier integer float string true false none call attribute subscript".split())
_ATOMS |= {"parenthesized_expression"}


def expand_increment(unit: CodeUnit) -> Iterator[Site | SkippedSite]:
    """Find the statements `n += 1` and `n -= 1`."""
    nodes = [node for node in _augmented(unit) if _is_increment(unit, node)]
    return _expand(unit, nodes, ("integer",), "the variable is not surely a local integer")


def expand_compound(unit: CodeUnit) -> Iterator[Site | SkippedSite]:
    """Find the augmented assignments."""
    # For a mutable value such as a list, `x += e` changes the list in place, but `x = x + e` makes a second
    # one.
    return _expand(unit, _augmented(unit), ("integer", "plain"), "the value may change in place")


def _augmented(unit: CodeUnit) -> list[Node]:
    """Return all augmented assignments, such as `x += 1`, from the last to the first."""
    return captures(unit, "(augmented_assignment) @node").get("node", [])[::-1]


def _is_increment(unit: CodeUnit, node: Node) -> bool:
    """Return whether an augmented assignment adds or subtracts 1."""
    is_sum = required(node, "operator").type in ("+=", "-=")
    return is_sum and unit.text_of(required(node, "right")) == b"1"


def _expand(
    unit: CodeUnit, nodes: list[Node], kinds: tuple[str, ...], reason: str
) -> Iterator[Site | SkippedSite]:
    """Yield a site for each assignment to a variable with a value of the given kinds; else a skipped site."""
    if not nodes:
        return
    values = LocalValues(unit, Scopes(unit))
    for node in nodes:
        target, operator, right = (
            required(node, "left"),
            required(node, "operator"),
            required(node, "right"),
        )
        if target.type != "identifier" or values.kind(target) not in kinds:
            yield SkippedSite(node, reason)
            continue
        spaced = unit.text[operator.start_byte - 1 : operator.start_byte].isspace()
        words = [b"=", unit.text_of(target), operator.type.removesuffix("=").encode()]
        edits = [Edit(*span_of(operator), ((b" " if spaced else b"").join(words),))]
        if right.type not in _ATOMS:
            edits.append(Edit(right.start_byte, right.start_byte, (b"(",)))
            edits.append(Edit(right.end_byte, right.end_byte, (b")",)))
        yield Site(node, tuple(edits))


# Names an interpreter, or an encoding, which only a comment in the first two lines can do (PEP 263).
_HEAD_COMMENT = re.compile(rb"#!|#.*?coding[:=]")
_ENCODING = re.compile(rb"\n[ \t\f]*#.*?coding[:=]")


def remove_comments(unit: CodeUnit) -> Iterator[Site | SkippedSite]:
    """Find all comments; a line that holds nothing else is removed as a whole."""
    found = captures(unit, "(comment) @comment (interpolation) @inside")
    strings = [(node.start_byte, node.end_byte) for node in found.get("inside", [])]
    for node in reversed(found.get("comment", [])):
        start, end = line_start(unit, node.start_byte), line_end(unit, node.start_byte)
        is_head = node.start_point.row < 2
        if is_head and _HEAD_COMMENT.match(unit.text_of(node)):
            yield SkippedSite(node, "the comment names a program or an encoding")
        elif is_head and _ENCODING.search(unit.text):
            # A later comment can rise to the first two lines when lines above it are removed.
            yield SkippedSite(node, "a later comment would name an encoding")
        elif any(first < node.start_byte < last for first, last in strings):
            # Since Python 3.12, an f-string may hold a comment (PEP 701).
            yield SkippedSite(node, "the comment stands in a string")
        elif starts_line(unit, node) and unit.text.startswith((b"\r\n", b"\n"), end):
            end = unit.text.index(b"\n", end) + 1
            yield Site(node, (Edit(start, end, ()),))
        else:
            code = unit.text[start : node.start_byte]
            yield Site(node, (Edit(start + len(code.rstrip(b" \t\f")), end, ()),))


def dead_code(unit: CodeUnit) -> Iterator[Site | SkippedSite]:
    """Find all functions; the dead code is inserted before the first statement after the docstring."""
    for function in reversed(captures(unit, "(function_definition) @function").get("function", [])):
        statements = children(required(function, "body"))
        if is_inline(unit, token(function, ":"), statements[0]):
            yield SkippedSite(function, "the body stands in the line of the head")
            continue
        first = statements[0]
        # A docstring counts as such only if it is the first statement.
        if docstring(function) is not None:
            if len(statements) == 1:
                yield SkippedSite(function, "the body is a docstring")
                continue
            first = statements[1]
        if not starts_line(unit, first):
            yield SkippedSite(function, "the first statement does not begin a line")
            continue
        indent = unit.indent_of(first.start_byte)
        step = indent.removeprefix(unit.indent_of(function.start_byte)) or b"    "
        lines = (b"if False:", indent + step + b"pass", indent)
        yield Site(function, (Edit(first.start_byte, first.start_byte, (unit.newline.join(lines),)),))
