"""Two rewrite rules for Java, which swap the two sides of a comparison.

The rule swap-relation rewrites `a < b` as `b > a`. The rule swap-equals rewrites `a == b` as `b == a`.
"""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from simllm.perturb.code.code_unit import CodeUnit, Site, SkippedSite
from simllm.perturb.code.java.java_parsing import JavaUnit, find_nodes, required
from simllm.perturb.code.java.java_side_effects import can_throw, has_effects
from simllm.perturb.code.java.java_type_inference import PRIMITIVES, is_literal, is_primitive_local, type_of
from simllm.perturb.code.java.java_variable_references import assigned_variables, variable_of
from simllm.perturb.code.source_edits import Edit, Span

_MIRRORED = {"<": b">", "<=": b">=", ">": b"<", ">=": b"<="}
_EQUALITIES = ("==", "!=")
_BOXES = frozenset("Byte Short Character Integer Long Float Double Boolean".split())


def swap_relation(unit: CodeUnit) -> Iterator[Site | SkippedSite]:
    """Find the comparisons `a < b` that can be rewritten as `b > a`.

    The operators `<=`, `>` and `>=` are treated in the same way.

    Yields:
        A `Site` (with the edits) for each comparison that can be rewritten safely; a `SkippedSite` (with the
        reason) for each that cannot.
    """
    assert isinstance(unit, JavaUnit)
    for node in find_nodes(unit.root, "binary_expression"):
        operator = required(node, "operator")
        if operator.type in _MIRRORED:
            yield from _swapped(
                unit, node, Edit(operator.start_byte, operator.end_byte, (_MIRRORED[operator.type],))
            )


def swap_equals(unit: CodeUnit) -> Iterator[Site | SkippedSite]:
    """Find the comparisons `a == b` that can be rewritten as `b == a`, and `a != b` as `b != a`.

    Yields:
        A `Site` (with the edits) for each comparison that can be rewritten safely; a `SkippedSite` (with the
        reason) for each that cannot.
    """
    assert isinstance(unit, JavaUnit)
    for node in find_nodes(unit.root, "binary_expression"):
        if required(node, "operator").type in _EQUALITIES:
            yield from _swapped(unit, node)


def _swapped(unit: JavaUnit, node: Node, *further: Edit) -> Iterator[Site | SkippedSite]:
    """Yield the edits that swap the two sides of a comparison, or the reason why the swap is unsafe.

    Args:
        unit: The parsed code.
        node: The comparison.
        further: Edits to make together with the swap, such as the edit that changes `<` to `>`.

    Yields:
        A single object. If the swap is safe, it is a `Site` with all edits. If the order in which the two
        sides are evaluated may matter, it is a `SkippedSite` with the reason.
    """
    left, right = required(node, "left"), required(node, "right")
    if not _order_is_irrelevant(unit, node, left, right):
        yield SkippedSite(node, "the order in which the two sides are evaluated may matter")
        return
    chained = left.type == "binary_expression" and required(left, "operator").type in _EQUALITIES
    first, second = Span(left.start_byte, left.end_byte), Span(right.start_byte, right.end_byte)
    moved = (b"(", first, b")") if chained else (first,)  # `a == b == c` is `(a == b) == c`
    apart = (b" ",) if unit.text[: first.start][-1:].isalpha() else ()  # `return-1 < n`
    yield Site(node, (Edit(*first, (*apart, second)), Edit(*second, moved), *further))


def _order_is_irrelevant(unit: JavaUnit, node: Node, left: Node, right: Node) -> bool:
    """Return whether the operands of a comparison can safely be evaluated in either order.

    Java evaluates the left operand first. The order matters, for example, if one operand assigns a variable
    that the other operand reads, or if both operands can throw.
    """
    if _keeps_its_value(unit, left, right) or _keeps_its_value(unit, right, left):
        return True
    if has_effects(unit, left) or has_effects(unit, right):
        return False
    throws = [can_throw(unit, left), can_throw(unit, right)]
    unboxed = [_may_be_wrapper(type_of(unit, side)) for side in (left, right)]
    if required(node, "operator").type in _EQUALITIES:  # at most one side of an equality is unboxed
        return not all(throws) and not (throws[0] and unboxed[1]) and not (throws[1] and unboxed[0])
    return not all(throw or unbox for throw, unbox in zip(throws, unboxed, strict=True))


def _keeps_its_value(unit: JavaUnit, side: Node, other: Node) -> bool:
    """Return whether a side of a comparison keeps its value while the other side is evaluated.

    This is certain for a literal. It is also certain for a local variable or parameter of a primitive type,
    unless the other side assigns a value to this variable. In all other cases, the result is False.

    Args:
        unit: The parsed code.
        side: The side whose value must not change.
        other: The side that is evaluated.
    """
    if is_literal(side):
        return True
    if not is_primitive_local(unit, side):
        return False
    return variable_of(unit, side) not in assigned_variables(unit, other)


def _may_be_wrapper(type_: str) -> bool:
    """Return whether a type may be a wrapper class such as `Integer`.

    This matters because a comparison such as `a < b` throws an exception if `a` or `b` is a wrapper that is
    null. The result is also True for an unknown type, and for a type parameter such as `T`.

    Args:
        type_: The name of the type; empty if it is unknown. A name in upper case is taken for a type
            parameter.
    """
    is_parameter = type_.isupper()  # a type parameter, such as T
    return type_ not in PRIMITIVES and (not type_ or type_ in _BOXES or is_parameter)
