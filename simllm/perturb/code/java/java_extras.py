"""Four rewrite rules for Java that are applied only if the user names them.

The rules are remove-comments, expand-compound (`x += e` becomes `x = x + (e)`), add-braces and dead-code.
They change code without changing its behaviour.
"""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from simllm.perturb.code.code_unit import CodeUnit, Site, SkippedSite
from simllm.perturb.code.java.java_expressions import PRIMITIVES, is_literal, type_of, variable_of
from simllm.perturb.code.java.java_parsing import (
    JavaUnit,
    children,
    field,
    find_nodes,
    has_comment,
    required,
)
from simllm.perturb.code.source_edits import Edit

_BODIES = {
    "if_statement": ("consequence", "alternative"),
    "for_statement": ("body",),
    "enhanced_for_statement": ("body",),
    "while_statement": ("body",),
    "do_statement": ("body",),
}
_WIDER = {  # for each type of `x`, the types of `e` for which `x = x + e` needs no cast
    "int": frozenset(("byte", "short", "char", "int")),
    "long": frozenset(("byte", "short", "char", "int", "long")),
    "float": frozenset(("byte", "short", "char", "int", "long", "float")),
    "double": PRIMITIVES - {"boolean"},
    "boolean": frozenset(("boolean",)),
}


def remove_comments(unit: CodeUnit) -> Iterator[Site | SkippedSite]:
    """Find all comments, and make the edits that remove them.

    If nothing but the comment is on a line, the whole line is removed.

    Yields:
        A `Site` with the edit for each comment; never a `SkippedSite`.
    """
    assert isinstance(unit, JavaUnit)
    for node in find_nodes(unit.root, "line_comment", "block_comment"):
        yield Site(node, (_removal(unit.text[: unit.source.end], node.start_byte, node.end_byte),))


def _removal(text: bytes, start: int, end: int) -> Edit:
    """Return the edit that removes a comment.

    If the comment is at the end of a line, the white space before the comment is removed, too. If nothing
    else is on the line, the whole line is removed.

    Args:
        text: The source.
        start: The index of the first byte of the comment.
        end: The index of the byte after the comment.
    """
    line = text.rfind(b"\n", 0, start) + 1
    stop = text.find(b"\n", end) + 1 or len(text)
    before, after = text[line:start], text[end:stop]
    if not after.strip():  # the end of a line
        if not before.strip():
            return Edit(line, stop, ())
        return Edit(start - (len(before) - len(before.rstrip())), end, ())
    touches = not before[-1:].isspace() and not after[:1].isspace() and before.strip() != b""
    return Edit(start, end, (b" ",) if touches else ())


def add_braces(unit: CodeUnit) -> Iterator[Site | SkippedSite]:
    """Find all `if` branches and loop bodies without braces, and make the edits that add braces.

    An `if` directly after an `else` gets no braces: `else if` stays as it is.

    Yields:
        A `Site` with the edits for each such branch or body; never a `SkippedSite`.
    """
    assert isinstance(unit, JavaUnit)
    for node in find_nodes(unit.root, *_BODIES):
        for name in _BODIES[node.type]:
            body = field(node, name)
            if body is None or body.type in ("block", "if_statement" if name == "alternative" else "block"):
                continue
            yield Site(body, tuple(_braces(unit, node, body)))


def _braces(unit: JavaUnit, node: Node, body: Node) -> Iterator[Edit]:
    """Yield the edits that put braces around the branch of an `if` or the body of a loop.

    Args:
        unit: The parsed code.
        node: The `if` statement or the loop.
        body: The branch or the body, a statement without braces.
    """
    before = [part for part in node.children if part.end_byte <= body.start_byte and not has_comment([part])]
    start, end = before[-1].end_byte, body.end_byte
    if unit.text[start : body.start_byte].strip() or b"\n" not in unit.text[start : body.start_byte]:
        yield Edit(body.start_byte, body.start_byte, (b"{ ",))
        yield Edit(end, end, (b" }",))
    else:
        yield Edit(start, start, (b" {",))
        yield Edit(end, end, (unit.newline + unit.indent_of(node.start_byte) + b"}",))


def expand_compound(unit: CodeUnit) -> Iterator[Site | SkippedSite]:
    """Find the compound assignments `x += e` to local variables that can be rewritten as `x = x + (e)`.

    Yields:
        A `Site` for each compound assignment that can be rewritten; a `SkippedSite` for each that cannot.
    """
    assert isinstance(unit, JavaUnit)
    for node in find_nodes(unit.root, "assignment_expression"):
        operator = required(node, "operator")
        if operator.type == "=":
            continue
        left, right = required(node, "left"), required(node, "right")
        variable = variable_of(unit, left) if left.type == "identifier" else None
        if variable is None or variable.kind == "field":
            yield SkippedSite(node, "the left side is no local variable")
        elif not _needs_no_cast(operator.type, type_of(unit, left), type_of(unit, right)):
            yield SkippedSite(node, "the types may need a cast")
        else:
            atom = is_literal(right) or right.type in ("identifier", "parenthesized_expression")
            sign = operator.type[:-1].encode()
            sign += b" " * (unit.text[operator.end_byte :][:1] in (b"+", b"-"))
            edits = [
                Edit(operator.start_byte, operator.end_byte, (b"= " + unit.text_of(left) + b" " + sign,))
            ]
            if not atom:
                edits.append(Edit(right.start_byte, right.start_byte, (b"(",)))
                edits.append(Edit(right.end_byte, right.end_byte, (b")",)))
            yield Site(node, tuple(edits))


def _needs_no_cast(operator: str, left: str, right: str) -> bool:
    """Return whether `x += e` can certainly be rewritten as `x = x + e` without a cast.

    For example, the result is False if `x` is a byte: Java adds a cast in `x += 1`, but not in `x = x + 1`.
    The same holds for other operators: `x *= e` would become `x = x * e`.

    Args:
        operator: The compound operator, such as "+=" or "*=".
        left: The type of `x`.
        right: The type of `e`; empty if it is unknown.
    """
    if left == "String":
        return operator == "+="
    if operator in ("<<=", ">>=", ">>>="):
        return left in ("int", "long") and right in _WIDER["long"]
    return right in _WIDER.get(left, ())


def dead_code(unit: CodeUnit) -> Iterator[Site | SkippedSite]:
    """Find all methods and constructors, and make the edits that insert dead code at their start.

    The dead code is `if (false) { throw null; }`. In a constructor that begins with `this(...)` or
    `super(...)`, it is inserted after this call.

    Yields:
        A `Site` with the edit for each method or constructor that has a body; never a `SkippedSite`.
    """
    assert isinstance(unit, JavaUnit)
    for node in find_nodes(unit.root, "method_declaration", "constructor_declaration"):
        body = field(node, "body")
        if body is None:
            continue
        first = children(body)[:1]
        at = body.start_byte + 1
        if first and first[0].type == "explicit_constructor_invocation":
            at = first[0].end_byte
        indent = unit.indent_of(node.start_byte)
        step = b"\t" if indent.startswith(b"\t") else b"    "
        lines = [b"if (false) {", step + b"throw null;", b"}"]
        text = b"".join(unit.newline + indent + step + line for line in lines)
        yield Site(node, (Edit(at, at, (text,)),))
