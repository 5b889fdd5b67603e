"""Two rewrite rules for Java, nest-else-if and reverse-if, which change `if` statements.

The rule nest-else-if rewrites `else if (...) ...` as `else { if (...) ... }`. The rule reverse-if rewrites
`if (c) A else B` as `if (!c) B else A`.
"""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from simllm.perturb.code.code_unit import CodeUnit, Site, SkippedSite
from simllm.perturb.code.java.java_parsing import (
    JavaUnit,
    children,
    field,
    find_nodes,
    required,
    span_of,
    walk,
    without_parentheses,
)
from simllm.perturb.code.java.java_type_inference import INTEGERS, type_of
from simllm.perturb.code.source_edits import Edit, Span

_PATTERNS = frozenset(("type_pattern", "record_pattern"))
_FLIPPED = {"==": b"!=", "!=": b"==", "&&": b"||", "||": b"&&"}
_FLIPPED_RELATIONS = {"<": b">=", ">=": b"<", ">": b"<=", "<=": b">"}
_ATOMS = frozenset(  # expressions that `!` applies to without parentheses
    "identifier method_invocation field_access array_access parenthesized_expression true false".split()
)
_PLAIN = frozenset(  # statements without a part that could take an `else` away from its `if`
    "block expression_statement return_statement throw_statement break_statement continue_statement "
    "yield_statement".split()
)


def nest_else_if(unit: CodeUnit) -> Iterator[Site | SkippedSite]:
    """Find each `else if (...) ...`, and make the edits that turn it into `else { if (...) ... }`.

    Yields:
        For each `if` after `else`, a `Site`: a place in the code, with the edits that rewrite it. These
        edits are always safe. Therefore, no `SkippedSite` (a place that is unsafe to rewrite) is yielded.
    """
    assert isinstance(unit, JavaUnit)
    for node in find_nodes(unit.root, "if_statement"):
        inner = field(node, "alternative")
        if inner is not None and inner.type == "if_statement":
            yield Site(inner, tuple(_nested(unit, node, inner)))


def _nested(unit: JavaUnit, node: Node, inner: Node) -> Iterator[Edit]:
    """Yield the edits that turn `else if (...) ...` into `else { if (...) ... }` and indent the inner `if`.

    Args:
        unit: The parsed code.
        node: The outer `if` statement.
        inner: The `if` statement after the `else` of `node`.
    """
    word = _else(node)
    line = unit.text.rfind(b"\n", 0, word.start_byte) + 1
    indent = Span(line, line + len(unit.indent_of(word.start_byte)))  # copied with other insertions
    step = _step(unit, node)
    deeper = step * _depth_on_line(node, line)
    if unit.text[word.end_byte : inner.start_byte].strip():  # a comment stands between
        yield Edit(word.end_byte, word.end_byte, (b" {",))
    else:
        yield Edit(word.end_byte, inner.start_byte, (b" {" + unit.newline, indent, deeper + step))
    for start in _line_starts(unit, inner):
        yield Edit(start, start, (step,))
    yield Edit(inner.end_byte, inner.end_byte, (unit.newline, indent, deeper + b"}"))


def _else(node: Node) -> Node:
    """Return the word `else` of an `if` statement."""
    return next(child for child in node.children if child.type == "else")


def _step(unit: JavaUnit, node: Node) -> bytes:
    """Return the white space by which a statement is indented in the block around it."""
    own = unit.indent_of(node.start_byte)
    above = node.parent
    while above is not None and above.type not in ("block", "constructor_body", "switch_block"):
        above = above.parent
    around = unit.indent_of(above.start_byte) if above is not None else b""
    if own.startswith(around) and len(own) > len(around):
        return own[len(around) :]
    return b"\t" if own.startswith(b"\t") else b"    "


def _depth_on_line(node: Node, line: int) -> int:
    """Return how many `else if` around an `if` statement have their `else` on the same line as its `else`.

    Args:
        node: The `if` statement, which has an `else`.
        line: The index of the first byte of the line.
    """
    depth = 0
    above = node.parent
    while above is not None and above.type == "if_statement" and field(above, "alternative") == node:
        if _else(above).start_byte < line:
            break
        node, above, depth = above, above.parent, depth + 1
    return depth


def _line_starts(unit: JavaUnit, node: Node) -> Iterator[int]:
    """Find the lines of a syntax node that can be indented without changing a string or comment.

    The line on which the node begins is left out. Lines that begin inside a string or comment are left out,
    and so are empty lines, which need no indentation.

    Yields:
        The index of the first byte of each line that can be indented.
    """
    whole = [
        Span(part.start_byte, part.end_byte)
        for part in walk(node)
        if part.type in ("string_literal", "block_comment") and part.start_point.row < part.end_point.row
    ]
    start = unit.text.find(b"\n", node.start_byte, node.end_byte) + 1
    while start:
        blank = unit.text[start : start + 2].startswith((b"\n", b"\r\n"))
        if not blank and not any(span.start < start <= span.end for span in whole):
            yield start
        start = unit.text.find(b"\n", start, node.end_byte) + 1


def reverse_if(unit: CodeUnit) -> Iterator[Site | SkippedSite]:
    """Find the statements `if (c) A else B` that can be rewritten as `if (!c) B else A`.

    Yields:
        A `Site` (with the edits) for each `if` with an `else` that can be rewritten safely; a `SkippedSite`
        (with the reason) for each that cannot.
    """
    assert isinstance(unit, JavaUnit)
    for node in find_nodes(unit.root, "if_statement"):
        condition, first = required(node, "condition"), required(node, "consequence")
        second = field(node, "alternative")
        if second is None:
            continue
        if second.type == "if_statement":
            yield SkippedSite(node, "the else branch is another if")
        elif any(part.type in _PATTERNS or _declares_variable(part) for part in walk(condition)):
            yield SkippedSite(node, "the condition declares a variable")
        elif _may_have_inferred_type(unit, condition):
            yield SkippedSite(node, "the compiler may infer the type of the condition from the if")
        else:
            closed = second.type in _PLAIN
            moved = (span_of(second),) if closed else (b"{ ", span_of(second), b" }")
            space = unit.text[first.end_byte : first.end_byte + 1].isspace()
            yield Site(
                node,
                (
                    *negation(unit, children(condition)[0]),
                    *_brace_on_line(unit, condition, first, second),
                    *_brace_on_line(unit, _else(node), second, first),
                    Edit(first.start_byte, first.end_byte, (*moved, *(() if space else (b" ",)))),
                    Edit(
                        second.start_byte, second.end_byte, (*_space_after_else(unit, second), span_of(first))
                    ),
                ),
            )


def _brace_on_line(unit: JavaUnit, before: Node, old: Node, new: Node) -> Iterator[Edit]:
    """Yield the edit that puts a moved block on the line of the word or condition before it.

    Args:
        unit: The parsed code.
        before: The condition, or the word `else`.
        old: The branch that stands after it. The edit is made if it is a single statement on the next line.
        new: The branch that comes into its place.
    """
    gap = unit.text[before.end_byte : old.start_byte]
    if new.type == "block" and old.type != "block" and b"\n" in gap and not gap.strip():
        yield Edit(before.end_byte, old.start_byte, (b" ",))


def _space_after_else(unit: JavaUnit, second: Node) -> tuple[bytes, ...]:
    """Return the white space to insert after `else` when `reverse_if` swaps the branches.

    Without the space, `else{ ... }` could become `elsereturn x;`. No space is needed if white space already
    follows the `else`.

    Args:
        unit: The parsed code.
        second: The statement that stands after `else` before the rewrite.

    Returns:
        A tuple with one space; an empty tuple if no space is needed.
    """
    return () if unit.text[second.start_byte - 1 : second.start_byte].isspace() else (b" ",)


def _declares_variable(node: Node) -> bool:
    """Return whether an expression declares a variable by `instanceof`, as in `x instanceof Type name`."""
    return node.type == "instanceof_expression" and field(node, "name") is not None


def _may_have_inferred_type(unit: JavaUnit, condition: Node) -> bool:
    """Return whether `!` before a condition may change the type that the compiler infers for the condition.

    Such a condition cannot be negated safely. An example is `if (get())` with the generic method
    `<T> T get()`. From the `if`, the compiler infers that `T` is `Boolean`. It does not infer this in
    `if (!get())`, which therefore does not compile.
    """
    if without_parentheses(condition).type not in (
        "method_invocation",
        "ternary_expression",
        "switch_expression",
    ):
        return False
    called = {unit.text_of(required(call, "name")) for call in find_nodes(condition, "method_invocation")}
    methods = (part.parent for part in find_nodes(unit.root, "type_parameters"))
    return any(
        method is not None
        and method.type == "method_declaration"
        and unit.text_of(required(method, "name")) in called
        for method in methods
    )


def negation(unit: JavaUnit, node: Node) -> Iterator[Edit]:
    """Yield the edits that negate a condition.

    `!a` becomes `a`, `a == b` becomes `a != b`, and `a && b` becomes `!a || !b`. `a < b` becomes `a >= b`
    only for integers, because both comparisons are false if an operand is NaN. All other conditions get a
    `!`.

    Args:
        unit: The parsed code.
        node: A boolean expression. It may have parentheses.
    """
    kind = node.type
    if kind == "parenthesized_expression":
        yield from negation(unit, children(node)[0])
    elif kind == "unary_expression" and node.children[0].type == "!":
        operand = children(node)[0]
        end = node.children[0].end_byte
        yield Edit(node.start_byte, end, ())
        if operand.type == "parenthesized_expression" and _is_whole_condition(node):
            yield Edit(operand.start_byte, operand.start_byte + 1, ())
            yield Edit(operand.end_byte - 1, operand.end_byte, ())
    elif kind == "binary_expression":
        yield from _negated_operator(unit, node)
    elif kind in _ATOMS:
        yield Edit(node.start_byte, node.start_byte, (b"!",))
    else:
        yield from _wrapped(node)


def _is_whole_condition(node: Node) -> bool:
    """Return whether an expression is the whole condition of an `if`, such as `!a` in `if (!a)`."""
    above = node.parent
    return above is not None and above.parent is not None and above.parent.type == "if_statement"


def _wrapped(node: Node) -> Iterator[Edit]:
    """Yield the two edits that turn an expression `e` into `!(e)`."""
    yield Edit(node.start_byte, node.start_byte, (b"!(",))
    yield Edit(node.end_byte, node.end_byte, (b")",))


def _negated_operator(unit: JavaUnit, node: Node) -> Iterator[Edit]:
    """Yield the edits that negate a binary expression: for example, change `a == b` into `a != b`.

    The operands of `&&` and `||` are negated, too: `a && b` becomes `!a || !b`. If no operator means the
    opposite, as for a comparison of floats with `<`, the whole expression is negated: `!(a < b)`.
    """
    operator = required(node, "operator")
    left, right = required(node, "left"), required(node, "right")
    if operator.type in ("&&", "||"):
        yield Edit(operator.start_byte, operator.end_byte, (_FLIPPED[operator.type],))
        for part in (left, right):
            inner = required(part, "operator").type if part.type == "binary_expression" else ""
            opened = inner == "&&" and operator.type == "||"  # `&&` becomes `||`, which binds weaker
            if opened:
                yield Edit(part.start_byte, part.start_byte, (b"(",))
            yield from negation(unit, part)
            if opened:
                yield Edit(part.end_byte, part.end_byte, (b")",))
    elif operator.type in ("==", "!="):
        yield Edit(operator.start_byte, operator.end_byte, (_FLIPPED[operator.type],))
    elif operator.type in _FLIPPED_RELATIONS and {type_of(unit, left), type_of(unit, right)} <= INTEGERS:
        yield Edit(operator.start_byte, operator.end_byte, (_FLIPPED_RELATIONS[operator.type],))
    else:
        yield from _wrapped(node)
