"""The rewrite rule expand-increment for Java: `i++` becomes `i += 1`."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from simllm.perturb.code.code_unit import CodeUnit, Site, SkippedSite
from simllm.perturb.code.java.java_parsing import JavaUnit, children, find_nodes
from simllm.perturb.code.java.java_type_inference import PRIMITIVES, type_of
from simllm.perturb.code.source_edits import Edit, Span

_TYPES = PRIMITIVES | {"Integer", "Long", "Float", "Double"}  # `b += 1` does not compile for a Byte


def expand_increment(unit: CodeUnit) -> Iterator[Site | SkippedSite]:
    """Find the increments `i++` and `++i` that can be rewritten as `i += 1`.

    Decrements are treated in the same way: `i--` becomes `i -= 1`.

    Yields:
        A `Site` (with the edits) for each increment that can be rewritten safely; a `SkippedSite` (with the
        reason) for each that cannot. One reason is that the value of the increment is used, as in `a[i++]`.
    """
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
            span = Span(target.start_byte, target.end_byte)
            yield Site(node, (Edit(node.start_byte, node.end_byte, (span, sign)),))


def _is_statement(node: Node) -> bool:
    """Return whether an increment such as `i++` is used as a statement, so that nothing reads its value.

    The result is True for a statement such as `i++;`, and for an initializer or update of a `for` loop. The
    result is False after the arrow of a `switch` rule, as in `case 1 -> i++;`, because the value of the
    `switch` may be read.
    """
    parent = node.parent
    if parent is None or parent.type != "expression_statement":
        return parent is not None and _is_part_of_head(node, parent)
    return parent.parent is None or parent.parent.type != "switch_rule"


def _is_part_of_head(node: Node, parent: Node) -> bool:
    """Return whether an expression is an initializer or update in the head of a `for` loop.

    Args:
        node: The expression.
        parent: The parent of the expression in the syntax tree. If the parent is not a `for` loop, the result
            is False.
    """
    parts = parent.children_by_field_name("init") + parent.children_by_field_name("update")
    return parent.type == "for_statement" and any(part.id == node.id for part in parts)
