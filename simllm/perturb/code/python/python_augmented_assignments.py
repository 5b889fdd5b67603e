"""Two rewrite rules for augmented assignments in Python: `n += 1` becomes `n = n + 1`.

The rule expand-increment rewrites only `n += 1` and `n -= 1`, for integers. The rule expand-compound rewrites
`x += e` with any operator, such as `x <<= e`, for integers and other immutable values.
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
    """Find all statements `n += 1` and `n -= 1`, in order to rewrite them as `n = n + 1` and `n = n - 1`.

    Yields:
        For each `n += 1` or `n -= 1`: a `Site` with the edits if `n` is certainly a local variable that holds
        an integer, and otherwise a `SkippedSite` with the reason.
    """
    nodes = [node for node in _augmented(unit) if _is_increment(unit, node)]
    return _expand(unit, nodes, ("integer",), "the variable is not surely a local integer")


def expand_compound(unit: CodeUnit) -> Iterator[Site | SkippedSite]:
    """Find all augmented assignments, such as `x += e`, in order to rewrite them as `x = x + e`.

    Other operators are treated in the same way. For example, `x <<= e` becomes `x = x << e`.

    Yields:
        For each augmented assignment: a `Site` with the edits if `x` is a local variable whose value is
        certainly immutable, and otherwise a `SkippedSite` with the reason. A list, for example, is mutable:
        `x += e` changes it in place, but `x = x + e` makes a second list.
    """
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
    """Check which augmented assignments, such as `x += e`, can be rewritten as `x = x + e`.

    Args:
        unit: The parsed code.
        nodes: The augmented assignments.
        kinds: The kinds of values of `x` for which the rewrite is safe: "integer", and possibly "plain".
            Plain values are other immutable values, such as strings.
        reason: The reason to store in each `SkippedSite`.

    Yields:
        For each assignment, a `Site` with the edits. If the rewrite is not safe, a `SkippedSite` with the
        reason instead.
    """
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
