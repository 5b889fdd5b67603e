"""The rules swap-relation (`a < b` becomes `b > a`) and swap-equals (`a == b` becomes `b == a`) for Java."""

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
    """Find the comparisons with `<`, `<=`, `>` or `>=`."""
    assert isinstance(unit, JavaUnit)
    for node in find_nodes(unit.root, "binary_expression"):
        operator = required(node, "operator")
        if operator.type in _MIRRORED:
            yield from _swapped(
                unit, node, Edit(operator.start_byte, operator.end_byte, (_MIRRORED[operator.type],))
            )


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
    first, second = Span(left.start_byte, left.end_byte), Span(right.start_byte, right.end_byte)
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
