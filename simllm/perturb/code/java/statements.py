"""The rules remove-comments, expand-compound, expand-increment and dead-code for Java."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from simllm.perturb.code.edits import Edit
from simllm.perturb.code.java.parsing import (
    JavaUnit,
    children,
    field_child,
    find_nodes,
    required,
    variable_of,
)
from simllm.perturb.code.java.types import PRIMITIVES, is_literal, type_of
from simllm.perturb.code.units import CodeUnit, Site, SkippedSite, indentation_step, span_of


def remove_comments(unit: CodeUnit) -> Iterator[Site | SkippedSite]:
    """Find all comments; a line that holds nothing else is removed as a whole."""
    assert isinstance(unit, JavaUnit)
    for node in find_nodes(unit.root, "line_comment", "block_comment"):
        yield Site(node, (_removal(unit.text[: unit.source.end], node.start_byte, node.end_byte),))


def _removal(text: bytes, start: int, end: int) -> Edit:
    """Return the edit that removes a comment, and the white space before it at the end of a line."""
    line = text.rfind(b"\n", 0, start) + 1
    stop = text.find(b"\n", end) + 1 or len(text)
    before, after = text[line:start], text[end:stop]
    # The comment is at the end of a line.
    if not after.strip():
        if not before.strip():
            return Edit(line, stop, ())
        return Edit(start - (len(before) - len(before.rstrip())), end, ())
    # `int/**/x` must not become `intx`.
    touches = not before[-1:].isspace() and not after[:1].isspace() and before.strip() != b""
    return Edit(start, end, (b" ",) if touches else ())


# For each type of `x`, the types of `e` for which `x = x + e` needs no cast. `byte`, `short` and `char` are
# missing: Java adds a cast to `b += 1`, but `b = b + 1` does not compile.
_WIDER = {
    "int": frozenset(("byte", "short", "char", "int")),
    "long": frozenset(("byte", "short", "char", "int", "long")),
    "float": frozenset(("byte", "short", "char", "int", "long", "float")),
    "double": PRIMITIVES - {"boolean"},
    "boolean": frozenset(("boolean",)),
}


def expand_compound(unit: CodeUnit) -> Iterator[Site | SkippedSite]:
    """Find the compound assignments; only those to local variables can be rewritten."""
    assert isinstance(unit, JavaUnit)
    for node in find_nodes(unit.root, "assignment_expression"):
        operator = required(node, "operator")
        if operator.type == "=":
            continue
        left, right = required(node, "left"), required(node, "right")
        variable = variable_of(unit, left) if left.type == "identifier" else None
        # `a[f()] += 1` evaluates `f()` once, `a[f()] = a[f()] + 1` twice.
        if variable is None or variable.kind == "field":
            yield SkippedSite(node, "the left side is no local variable")
        elif not _needs_no_cast(operator.type, type_of(unit, left), type_of(unit, right)):
            yield SkippedSite(node, "the types may need a cast")
        else:
            atom = is_literal(right) or right.type in ("identifier", "parenthesized_expression")
            sign = operator.type[:-1].encode()
            # `x -=-1` must not become `x = x --1`.
            sign += b" " * (unit.text[operator.end_byte :][:1] in (b"+", b"-"))
            edits = [Edit(*span_of(operator), (b"= " + unit.text_of(left) + b" " + sign,))]
            if not atom:
                edits.append(Edit(right.start_byte, right.start_byte, (b"(",)))
                edits.append(Edit(right.end_byte, right.end_byte, (b")",)))
            yield Site(node, tuple(edits))


def _needs_no_cast(operator: str, left: str, right: str) -> bool:
    """Return whether `x += e` can certainly be rewritten without a cast, given the operator and two types."""
    # Any value can be joined to a string.
    if left == "String":
        return operator == "+="
    # A shift has the type of its left operand alone.
    if operator in ("<<=", ">>=", ">>>="):
        return left in ("int", "long") and right in _WIDER["long"]
    return right in _WIDER.get(left, ())


# `b += 1` does not compile for a `Byte`, nor for a `Short` or `Character`.
_TYPES = PRIMITIVES | {"Integer", "Long", "Float", "Double"}


def expand_increment(unit: CodeUnit) -> Iterator[Site | SkippedSite]:
    """Find the increments and decrements."""
    assert isinstance(unit, JavaUnit)
    for node in find_nodes(unit.root, "update_expression"):
        target = children(node)[0]
        if not _is_statement(node):
            yield SkippedSite(node, "the value is used")
        elif len(node.children) > 2:
            yield SkippedSite(node, "a comment stands inside")
        elif target.type == "parenthesized_expression":
            yield SkippedSite(node, "the variable stands in parentheses")
        elif type_of(unit, target) not in _TYPES:
            yield SkippedSite(node, "the type is unknown or too narrow")
        else:
            operator = next(child for child in node.children if child.type in ("++", "--"))
            sign = b" += 1" if operator.type == "++" else b" -= 1"
            span = span_of(target)
            yield Site(node, (Edit(*span_of(node), (span, sign)),))


def _is_statement(node: Node) -> bool:
    """Return whether an increment is a statement, or in the head of a `for` loop: nothing reads its value."""
    parent = node.parent
    if parent is None or parent.type != "expression_statement":
        return parent is not None and _is_part_of_head(node, parent)
    # After the arrow of a `switch` rule, as in `case 1 -> i++;`, the value of the `switch` may be read.
    return parent.parent is None or parent.parent.type != "switch_rule"


def _is_part_of_head(node: Node, parent: Node) -> bool:
    """Return whether an expression is an initializer or update of `parent`, if that is a `for` loop."""
    parts = parent.children_by_field_name("init") + parent.children_by_field_name("update")
    return parent.type == "for_statement" and any(part.id == node.id for part in parts)


def dead_code(unit: CodeUnit) -> Iterator[Site | SkippedSite]:
    """Find all methods and constructors with a body; the dead code is inserted at its start."""
    assert isinstance(unit, JavaUnit)
    for node in find_nodes(unit.root, "method_declaration", "constructor_declaration"):
        body = field_child(node, "body")
        if body is None:
            continue
        first = children(body)[:1]
        at = body.start_byte + 1
        # `this(...)` and `super(...)` must be the first statement.
        if first and first[0].type == "explicit_constructor_invocation":
            at = first[0].end_byte
        indent = unit.indent_of(node.start_byte)
        step = indentation_step(indent)
        # Java rejects unreachable statements, but makes an exception for the body of `if (false)` (Java
        # Language Specification, section 14.22). `throw null` compiles whatever the method declares to throw.
        lines = [b"if (false) {", step + b"throw null;", b"}"]
        text = b"".join(unit.newline + indent + step + line for line in lines)
        yield Site(node, (Edit(at, at, (text,)),))
