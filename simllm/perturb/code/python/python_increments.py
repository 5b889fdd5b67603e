"""Rewrites of Python's augmented assignments: `n += 1` becomes `n = n + 1`."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from simllm.perturb.code.code_unit import CodeUnit, Site, SkippedSite
from simllm.perturb.code.python.python_scopes import Scopes
from simllm.perturb.code.python.python_unit import captures, field
from simllm.perturb.code.python.python_values import LocalValues
from simllm.perturb.code.source_edits import Edit

_ATOMS = frozenset("identifier integer float string true false none call attribute subscript".split())
_ATOMS |= {"parenthesized_expression"}


def expand_increment(unit: CodeUnit) -> Iterator[Site | SkippedSite]:
    """Turn `n += 1` and `n -= 1` into `n = n + 1` and `n = n - 1`, for local variables that are integers."""
    nodes = [node for node in _augmented(unit) if _is_increment(unit, node)]
    return _expand(unit, nodes, ("integer",), "the variable is not surely a local integer")


def expand_compound(unit: CodeUnit) -> Iterator[Site | SkippedSite]:
    """Turn `x += e` into `x = x + e`, for local variables whose values never change in place."""
    return _expand(unit, _augmented(unit), ("integer", "plain"), "the value may change in place")


def _augmented(unit: CodeUnit) -> list[Node]:
    """Return the augmented assignments of a unit, inner ones first."""
    return captures(unit, "(augmented_assignment) @node").get("node", [])[::-1]


def _is_increment(unit: CodeUnit, node: Node) -> bool:
    """Return whether a statement adds or subtracts one."""
    is_sum = field(node, "operator").type in ("+=", "-=")
    return is_sum and unit.text_of(field(node, "right")) == b"1"


def _expand(
    unit: CodeUnit, nodes: list[Node], kinds: tuple[str, ...], reason: str
) -> Iterator[Site | SkippedSite]:
    """Expand augmented assignments to variables whose values are surely of the given kinds."""
    if not nodes:
        return
    values = LocalValues(unit, Scopes(unit))
    for node in nodes:
        target, operator, right = field(node, "left"), field(node, "operator"), field(node, "right")
        if target.type != "identifier" or values.kind(target) not in kinds:
            yield SkippedSite(node, reason)
            continue
        spaced = unit.text[operator.start_byte - 1 : operator.start_byte].isspace()
        words = [b"=", unit.text_of(target), operator.type.removesuffix("=").encode()]
        edits = [Edit(operator.start_byte, operator.end_byte, ((b" " if spaced else b"").join(words),))]
        if right.type not in _ATOMS:
            edits.append(Edit(right.start_byte, right.start_byte, (b"(",)))
            edits.append(Edit(right.end_byte, right.end_byte, (b")",)))
        yield Site(node, tuple(edits))
