"""The rule expand-increment for Java: `i++` and `++i` become `i += 1`, and `i--` becomes `i -= 1`."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from simllm.perturb.code.code_unit import CodeUnit, Site, SkippedSite
from simllm.perturb.code.java.java_parsing import JavaUnit, children, find_nodes
from simllm.perturb.code.java.java_type_inference import PRIMITIVES, type_of
from simllm.perturb.code.source_edits import Edit, Span

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
            span = Span(target.start_byte, target.end_byte)
            yield Site(node, (Edit(node.start_byte, node.end_byte, (span, sign)),))


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
