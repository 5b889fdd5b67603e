"""The rules expand-increment and expand-compound for Python: `n += 1` becomes `n = n + 1`.

expand-increment rewrites only `n += 1` and `n -= 1`, for integers. expand-compound rewrites any operator,
such as `x <<= e`, for integers and other immutable values.
"""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from simllm.perturb.code.code_unit import CodeUnit, Site, SkippedSite
from simllm.perturb.code.python.python_name_resolution import Scopes
from simllm.perturb.code.python.python_parsing import captures, field
from simllm.perturb.code.python.python_type_inference import LocalValues
from simllm.perturb.code.source_edits import Edit

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
    is_sum = field(node, "operator").type in ("+=", "-=")
    return is_sum and unit.text_of(field(node, "right")) == b"1"


def _expand(
    unit: CodeUnit, nodes: list[Node], kinds: tuple[str, ...], reason: str
) -> Iterator[Site | SkippedSite]:
    """Yield a site for each assignment to a variable with a value of the given kinds; else a skipped site."""
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
