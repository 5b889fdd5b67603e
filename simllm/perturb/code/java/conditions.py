"""The rules for branches and comparisons in Java.

nest-else-if rewrites `else if (...) ...` as `else { if (...) ... }`, reverse-if rewrites `if (c) A else B` as
`if (!c) B else A`, swap-relation and swap-equals swap the sides of a comparison, and add-braces puts braces
around single statements.
"""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from simllm.perturb.code.edits import Edit, Span
from simllm.perturb.code.java.parsing import (
    JavaUnit,
    assigned_variables,
    children,
    field_child,
    find_nodes,
    has_comment,
    required,
    variable_of,
    walk,
    without_parentheses,
)
from simllm.perturb.code.java.types import (
    INTEGERS,
    PRIMITIVES,
    can_throw,
    has_effects,
    is_literal,
    is_primitive_local,
    type_of,
)
from simllm.perturb.code.units import CodeUnit, Site, SkippedSite, indentation_step, span_of

_PATTERNS = frozenset(("type_pattern", "record_pattern"))
_FLIPPED = {"==": b"!=", "!=": b"==", "&&": b"||", "||": b"&&"}
_FLIPPED_RELATIONS = {"<": b">=", ">=": b"<", ">": b"<=", "<=": b">"}
# Expressions that `!` applies to without parentheses.
_ATOMS = frozenset(
    "identifier method_invocation field_access array_access parenthesized_expression true false".split()
)
# Statements without a part that could take an `else` away from its `if`.
_PLAIN = frozenset(
    "block expression_statement return_statement throw_statement break_statement continue_statement "
    "yield_statement".split()
)


def nest_else_if(unit: CodeUnit) -> Iterator[Site | SkippedSite]:
    """Find each `else if (...) ...`."""
    assert isinstance(unit, JavaUnit)
    for node in find_nodes(unit.root, "if_statement"):
        inner = field_child(node, "alternative")
        # Always safe, so there are no skipped sites.
        if inner is not None and inner.type == "if_statement":
            yield Site(inner, tuple(_nested(unit, node, inner)))


def _nested(unit: JavaUnit, node: Node, inner: Node) -> Iterator[Edit]:
    """Yield the edits that put braces around the `inner` if after `else`, and indent it."""
    word = _else(node)
    line = unit.text.rfind(b"\n", 0, word.start_byte) + 1
    # Copied, so that the insertions of other edits in the indentation come along.
    indent = Span(line, line + len(unit.indent_of(word.start_byte)))
    step = _step(unit, node)
    # An outer `else if` on this line inserts nothing at the start of the line, so its step is added here.
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
    return indentation_step(own)


def _depth_on_line(node: Node, line: int) -> int:
    """Return how many `else if` around an `if` have their `else` on the line that begins at byte `line`."""
    depth = 0
    above = node.parent
    while above is not None and above.type == "if_statement" and field_child(above, "alternative") == node:
        if _else(above).start_byte < line:
            break
        node, above, depth = above, above.parent, depth + 1
    return depth


def _line_starts(unit: JavaUnit, node: Node) -> Iterator[int]:
    """Yield the first byte of each line, after the first, that can be indented."""
    # An indented line within a text block or comment would change the string or comment.
    whole = [
        span_of(part)
        for part in walk(node)
        if part.type in ("string_literal", "block_comment") and part.start_point.row < part.end_point.row
    ]
    start = unit.text.find(b"\n", node.start_byte, node.end_byte) + 1
    while start:
        blank = unit.text[start : start + 2].startswith((b"\n", b"\r\n"))
        if not blank and not any(span.start < start <= span.end for span in whole):
            yield start
        start = unit.text.find(b"\n", start, node.end_byte) + 1


_BODIES = {
    "if_statement": ("consequence", "alternative"),
    "for_statement": ("body",),
    "enhanced_for_statement": ("body",),
    "while_statement": ("body",),
    "do_statement": ("body",),
}


def add_braces(unit: CodeUnit) -> Iterator[Site | SkippedSite]:
    """Find the `if` branches and loop bodies without braces; `else if` stays as it is."""
    assert isinstance(unit, JavaUnit)
    # Always safe, so there are no skipped sites: a body without braces declares no variable.
    for node in find_nodes(unit.root, *_BODIES):
        for name in _BODIES[node.type]:
            body = field_child(node, name)
            if body is None or body.type in ("block", "if_statement" if name == "alternative" else "block"):
                continue
            yield Site(body, tuple(_braces(unit, node, body)))


def _braces(unit: JavaUnit, node: Node, body: Node) -> Iterator[Edit]:
    """Yield the edits that put braces around `body`, a branch or loop body of `node`."""
    before = [part for part in node.children if part.end_byte <= body.start_byte and not has_comment([part])]
    start, end = before[-1].end_byte, body.end_byte
    # A comment between head and body may be a line comment, so the brace then comes after it.
    if unit.text[start : body.start_byte].strip() or b"\n" not in unit.text[start : body.start_byte]:
        yield Edit(body.start_byte, body.start_byte, (b"{ ",))
        yield Edit(end, end, (b" }",))
    else:
        yield Edit(start, start, (b" {",))
        yield Edit(end, end, (unit.newline + unit.indent_of(node.start_byte) + b"}",))


def reverse_if(unit: CodeUnit) -> Iterator[Site | SkippedSite]:
    """Find the statements `if (c) A else B`."""
    assert isinstance(unit, JavaUnit)
    for node in find_nodes(unit.root, "if_statement"):
        condition, first = required(node, "condition"), required(node, "consequence")
        second = field_child(node, "alternative")
        if second is None:
            continue
        if second.type == "if_statement":
            yield SkippedSite(node, "the else branch is another if")
        elif any(part.type in _PATTERNS or _declares_variable(part) for part in walk(condition)):
            # The scope of such a variable depends on whether the condition is true.
            yield SkippedSite(node, "the condition declares a variable")
        elif _may_have_inferred_type(unit, condition):
            yield SkippedSite(node, "the compiler may infer the type of the condition from the if")
        else:
            # Without braces, the `else` could belong to an `if` inside the moved branch.
            closed = second.type in _PLAIN
            moved = (span_of(second),) if closed else (b"{ ", span_of(second), b" }")
            space = unit.text[first.end_byte : first.end_byte + 1].isspace()
            yield Site(
                node,
                (
                    *negation(unit, children(condition)[0]),
                    *_brace_on_line(unit, condition, first, second),
                    *_brace_on_line(unit, _else(node), second, first),
                    Edit(*span_of(first), (*moved, *(() if space else (b" ",)))),
                    Edit(
                        second.start_byte, second.end_byte, (*_space_after_else(unit, second), span_of(first))
                    ),
                ),
            )


def _brace_on_line(unit: JavaUnit, before: Node, old: Node, new: Node) -> Iterator[Edit]:
    """Yield the edit that puts a moved block on the line of the condition or `else` before it."""
    gap = unit.text[before.end_byte : old.start_byte]
    if new.type == "block" and old.type != "block" and b"\n" in gap and not gap.strip():
        yield Edit(before.end_byte, old.start_byte, (b" ",))


def _space_after_else(unit: JavaUnit, second: Node) -> tuple[bytes, ...]:
    """Return the white space to insert after `else` when the branches are swapped."""
    # `else{ ... }` must not become `elsereturn x;`.
    return () if unit.text[second.start_byte - 1 : second.start_byte].isspace() else (b" ",)


def _declares_variable(node: Node) -> bool:
    """Return whether an expression declares a variable, as in `x instanceof Type name`."""
    return node.type == "instanceof_expression" and field_child(node, "name") is not None


def _may_have_inferred_type(unit: JavaUnit, condition: Node) -> bool:
    """Return whether `!` before a condition may change the type that the compiler infers for it."""
    # An example is `if (get())` with the generic method `<T> T get()`. From the `if`, the compiler infers
    # that `T` is `Boolean`. It does not infer this in `if (!get())`, which therefore does not compile.
    if without_parentheses(condition).type not in (
        "method_invocation",
        "ternary_expression",
        "switch_expression",
    ):
        return False
    called = {unit.text_of(required(call, "name")) for call in find_nodes(condition, "method_invocation")}
    # The parents of type parameters are classes and methods; only methods matter here.
    methods = (part.parent for part in find_nodes(unit.root, "type_parameters"))
    return any(
        method is not None
        and method.type == "method_declaration"
        and unit.text_of(required(method, "name")) in called
        for method in methods
    )


def negation(unit: JavaUnit, node: Node) -> Iterator[Edit]:
    """Yield the edits that negate a boolean expression.

    `!a` becomes `a`, `a == b` becomes `a != b`, `a && b` becomes `!a || !b`, and other conditions get a `!`.
    """
    kind = node.type
    if kind == "parenthesized_expression":
        yield from negation(unit, children(node)[0])
    elif kind == "unary_expression" and node.children[0].type == "!":
        operand = children(node)[0]
        end = node.children[0].end_byte
        yield Edit(node.start_byte, end, ())
        # `if (!(a || b))` becomes `if (a || b)`, without double parentheses.
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
    """Yield the edits that turn `e` into `!(e)`."""
    yield Edit(node.start_byte, node.start_byte, (b"!(",))
    yield Edit(node.end_byte, node.end_byte, (b")",))


def _negated_operator(unit: JavaUnit, node: Node) -> Iterator[Edit]:
    """Yield the edits that negate a binary expression by its operator, if an operator means the opposite."""
    operator = required(node, "operator")
    left, right = required(node, "left"), required(node, "right")
    if operator.type in ("&&", "||"):
        yield Edit(*span_of(operator), (_FLIPPED[operator.type],))
        for part in (left, right):
            inner = required(part, "operator").type if part.type == "binary_expression" else ""
            # `&&` becomes `||`, which binds weaker.
            opened = inner == "&&" and operator.type == "||"
            if opened:
                yield Edit(part.start_byte, part.start_byte, (b"(",))
            yield from negation(unit, part)
            if opened:
                yield Edit(part.end_byte, part.end_byte, (b")",))
    elif operator.type in ("==", "!="):
        yield Edit(*span_of(operator), (_FLIPPED[operator.type],))
    elif operator.type in _FLIPPED_RELATIONS and {type_of(unit, left), type_of(unit, right)} <= INTEGERS:
        # Only for integers: `a < b` and `a >= b` are both false if an operand is NaN.
        yield Edit(*span_of(operator), (_FLIPPED_RELATIONS[operator.type],))
    else:
        yield from _wrapped(node)


_MIRRORED = {"<": b">", "<=": b">=", ">": b"<", ">=": b"<="}
_EQUALITIES = ("==", "!=")
_BOXES = frozenset("Byte Short Character Integer Long Float Double Boolean".split())


def swap_relation(unit: CodeUnit) -> Iterator[Site | SkippedSite]:
    """Find the comparisons with `<`, `<=`, `>` or `>=`."""
    assert isinstance(unit, JavaUnit)
    for node in find_nodes(unit.root, "binary_expression"):
        operator = required(node, "operator")
        if operator.type in _MIRRORED:
            yield from _swapped(unit, node, Edit(*span_of(operator), (_MIRRORED[operator.type],)))


def swap_equals(unit: CodeUnit) -> Iterator[Site | SkippedSite]:
    """Find the comparisons with `==` or `!=`."""
    assert isinstance(unit, JavaUnit)
    for node in find_nodes(unit.root, "binary_expression"):
        if required(node, "operator").type in _EQUALITIES:
            yield from _swapped(unit, node)


def _swapped(unit: JavaUnit, node: Node, *further: Edit) -> Iterator[Site | SkippedSite]:
    """Yield the site of one comparison, with `further` edits; or a skipped site."""
    left, right = required(node, "left"), required(node, "right")
    if not _order_is_irrelevant(unit, node, left, right):
        yield SkippedSite(node, "the order in which the two sides are evaluated may matter")
        return
    chained = left.type == "binary_expression" and required(left, "operator").type in _EQUALITIES
    first, second = span_of(left), span_of(right)
    # `a == b == c` is `(a == b) == c`.
    moved = (b"(", first, b")") if chained else (first,)
    # `return-1 < n` must not become `returnn > -1`.
    apart = (b" ",) if unit.text[: first.start][-1:].isalpha() else ()
    yield Site(node, (Edit(*first, (*apart, second)), Edit(*second, moved), *further))


def _order_is_irrelevant(unit: JavaUnit, node: Node, left: Node, right: Node) -> bool:
    """Return whether the operands of a comparison can safely be evaluated in either order."""
    # Java evaluates the left operand first. The order matters if one operand changes what the other reads, or
    # if both can throw: then another exception would come.
    if _keeps_its_value(unit, left, right) or _keeps_its_value(unit, right, left):
        return True
    if has_effects(unit, left) or has_effects(unit, right):
        return False
    throws = [can_throw(unit, left), can_throw(unit, right)]
    unboxed = [_may_be_wrapper(type_of(unit, side)) for side in (left, right)]
    # A wrapper that is null throws when it is unboxed. An equality unboxes at most one side, a relation both.
    if required(node, "operator").type in _EQUALITIES:
        return not all(throws) and not (throws[0] and unboxed[1]) and not (throws[1] and unboxed[0])
    return not all(throw or unbox for throw, unbox in zip(throws, unboxed, strict=True))


def _keeps_its_value(unit: JavaUnit, side: Node, other: Node) -> bool:
    """Return whether one side certainly keeps its value while the other side is evaluated."""
    # Other threads cannot change a local variable, nor can a method that is called, but both can change a
    # field.
    if is_literal(side):
        return True
    if not is_primitive_local(unit, side):
        return False
    return variable_of(unit, side) not in assigned_variables(unit, other)


def _may_be_wrapper(type_: str) -> bool:
    """Return whether a type may be a wrapper class such as `Integer`."""
    # A name in upper case is taken for a type parameter, such as `T`, which may stand for a wrapper.
    is_parameter = type_.isupper()
    return type_ not in PRIMITIVES and (not type_ or type_ in _BOXES or is_parameter)
