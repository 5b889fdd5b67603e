"""The rules swap-relation and swap-equals for Python: `a < 3` becomes `3 > a`, `a == 3` becomes `3 == a`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from tree_sitter import Node

from simllm.perturb.code.code_unit import CodeUnit, Site, SkippedSite
from simllm.perturb.code.python.python_name_resolution import Scopes
from simllm.perturb.code.python.python_parsing import captures, pad
from simllm.perturb.code.source_edits import Edit, Span

_MIRRORED: Final = {b"<": b">", b"<=": b">=", b">": b"<", b">=": b"<="}
_EQUALS: Final = {operator: operator for operator in (b"==", b"!=", b"is", b"is not")}
# Literals that leave the comparison to the other side if the other side defines its own. Floats and True do
# not: they compare themselves with an instance of a subclass of int, and do not call its method.
_MODEST = frozenset("integer string concatenated_string none ellipsis".split())
_LITERALS = _MODEST | frozenset("float true false".split())


def swap_relation(unit: CodeUnit) -> Iterator[Site | SkippedSite]:
    """Find the comparisons with `<`, `<=`, `>` or `>=`."""
    return _swap(unit, _MIRRORED)


def swap_equals(unit: CodeUnit) -> Iterator[Site | SkippedSite]:
    """Find the comparisons with `==`, `!=`, `is` or `is not`."""
    return _swap(unit, _EQUALS)


def _swap(unit: CodeUnit, operators: Mapping[bytes, bytes]) -> Iterator[Site | SkippedSite]:
    """Find the comparisons with an operator in `operators`, which maps it to the operator after the swap."""
    found = captures(unit, '(comparison_operator) @compare (interpolation "=") @shown (type) @annotation')
    kept = [
        Span(node.start_byte, node.end_byte)
        for name in ("shown", "annotation")
        for node in found.get(name, [])
    ]
    scopes: Scopes | None = None
    for node in reversed(found.get("compare", [])):
        tokens = node.children_by_field_name("operators")
        texts = [b" ".join(unit.text_of(token).split()) for token in tokens]
        if not any(text in operators for text in texts):
            continue
        sides = [child for child in node.named_children if child.type != "comment" and child not in tokens]
        if len(tokens) != 1 or len(sides) != 2:
            # `a < b < c` evaluates `c` only if `a < b` is true.
            yield SkippedSite(node, "the comparison is a chain")
        elif any(start <= node.start_byte < end for start, end in kept):
            # `f"{a < b=}"` shows the text, and the future import of annotations keeps them as text.
            yield SkippedSite(node, "the text of the comparison is read at run time")
        elif any(_is_literal(unit, side, tokens[0].type) for side in sides):
            yield Site(node, (_swapped(unit, node, sides, tokens[0], operators[texts[0]]),))
        elif not tokens[0].type.startswith("is"):
            yield SkippedSite(node, "no side is a literal that leaves the comparison to the other side")
        else:
            # Most code has no such comparison, and the analysis of scopes is slow.
            scopes = scopes or Scopes(unit)
            if all(side.type == "identifier" for side in sides) and any(
                _is_bound(scopes, side) for side in sides
            ):
                yield Site(node, (_swapped(unit, node, sides, tokens[0], operators[texts[0]]),))
            else:
                yield SkippedSite(node, "the order of the sides may matter")


def _swapped(unit: CodeUnit, node: Node, sides: list[Node], token: Node, operator: bytes) -> Edit:
    """Return the edit that swaps the sides around `token`, the old operator, and writes the new one."""
    left, right = sides
    parts = (
        Span(right.start_byte, right.end_byte),
        Span(left.end_byte, token.start_byte),
        operator,
        Span(token.end_byte, right.start_byte),
        Span(left.start_byte, left.end_byte),
    )
    return Edit(node.start_byte, node.end_byte, pad(unit, node.start_byte, node.end_byte, *parts))


def _is_literal(unit: CodeUnit, node: Node, operator: str) -> bool:
    """Return whether a side is a literal with which the sides can be swapped safely."""
    # The class of `x` may define comparison methods. `x < 3` calls them, so `3 > x` must call them, too. It
    # does for the literals in `_MODEST`. But for an instance of a subclass of int, `3.0 > x` calls only the
    # method of float.
    while node.type == "parenthesized_expression" and len(node.named_children) == 1:
        node = node.named_children[0]
    if node.type == "unary_operator" and node.children[-1].type in ("integer", "float"):
        node = node.children[-1]
    text = unit.text_of(node)
    is_plain = b"{" not in text or not any(child.type == "interpolation" for child in _parts(node))
    # tree-sitter counts complex literals such as `1j` as integers. With `is`, no method is called.
    if node.type == "integer" and text[-1:] in b"jJ":
        return operator.startswith("is")
    return is_plain and node.type in (_LITERALS if operator.startswith("is") else _MODEST)


def _parts(node: Node) -> Iterator[Node]:
    """Yield the children and grandchildren of a string literal."""
    for child in node.children:
        # The interpolations of an f-string are its children. In adjacent strings, they are grandchildren.
        yield child
        yield from child.children


def _is_bound(scopes: Scopes, node: Node) -> bool:
    """Return whether an identifier is a parameter that always has a value, so that reading it cannot fail."""
    variable = scopes.at(node)
    return (
        variable is not None
        and scopes.is_known(variable)
        and any(use.role in ("parameter", "rest") for use in variable.uses)
        # The end of `except OSError as e` deletes `e`.
        and not any(use.role == "delete" or _is_exception(use.node) for use in variable.uses)
    )


def _is_exception(node: Node) -> bool:
    """Return whether an identifier is the `e` of `except OSError as e`."""
    target = node.parent
    pattern = target.parent if target is not None and target.type == "as_pattern_target" else None
    clause = pattern.parent if pattern is not None else None
    return clause is not None and clause.type in ("except_clause", "except_group_clause")
