"""The rules for branches and comparisons in Python.

nest-else-if turns `elif` into `else:` with a nested `if`, reverse-if turns `if c: A else: B` into
`if not c: B else: A`, and swap-relation and swap-equals swap the sides of a comparison. `moved` counts, by
row from 0, the levels of indentation that the rewrites of other chains would add.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from tree_sitter import Node

from simllm.perturb.code.edits import Edit, Span
from simllm.perturb.code.python.parsing import (
    Lines,
    captures,
    children,
    is_inline,
    line_end,
    line_start,
    pad,
    required,
    starts_line,
    statement_end,
    token,
)
from simllm.perturb.code.python.scopes import Scopes
from simllm.perturb.code.units import CodeUnit, Site, SkippedSite, indentation_step, span_of

_DEEPEST = 90  # CPython allows 100 levels of indentation
_OPPOSITE = {b"is": b"is not", b"is not": b"is", b"in": b"not in", b"not in": b"in"}
_OPPOSITE |= {b"and": b"or", b"or": b"and"}
# Expressions that need no parentheses after `not`.
_TIGHT = frozenset(
    "identifier attribute subscript call parenthesized_expression integer float string true false none list"
    " tuple dictionary set list_comprehension set_comprehension dictionary_comprehension".split()
)


def nest_else_if(unit: CodeUnit) -> Iterator[Site | SkippedSite]:
    """Find the `if` statements with `elif` clauses."""
    chains = captures(unit, "(if_statement alternative: (elif_clause)) @if").get("if", [])
    if not chains:
        return
    lines = Lines(unit)
    # By row: the levels by which rewrites would indent the line. The chains are independent sites, and it is
    # not known which of them will be chosen, so the worst case counts.
    moved: Counter[int] = Counter()
    for chain in reversed(chains):
        clauses = [child for child in chain.children if child.type == "elif_clause"]
        reason = _why_not_nested(unit, lines, moved, chain, clauses)
        if reason:
            yield SkippedSite(chain, reason)
        else:
            yield Site(chain, tuple(_nesting(unit, lines, moved, chain, clauses)))


def _why_not_nested(
    unit: CodeUnit, lines: Lines, moved: Counter[int], chain: Node, clauses: list[Node]
) -> str | None:
    """Return the reason why the `elif` clauses of a chain cannot be nested; None if they can be."""
    if not all(starts_line(unit, child) for child in (chain, *clauses)):
        return "a line before the elif ends with a backslash"
    rows = range(clauses[0].start_point.row, chain.end_point.row + 1)
    indents = [lines.indent(row) for row in rows if lines.may_move(row)]
    if len(set(b"".join([_step(unit, chain), *indents]))) > 1:
        return "the indentation mixes tabs and spaces"
    deepest = max(len(lines.indent(row)) // len(_step(unit, chain)) + moved[row] for row in rows)
    if deepest + len(clauses) > _DEEPEST:
        return "the code is nested too deeply"
    return None


def _step(unit: CodeUnit, chain: Node) -> bytes:
    """Return the white space of one level of indentation in the branches of an `if`."""
    suite = required(chain, "consequence")
    indent = unit.indent_of(chain.start_byte)
    if is_inline(unit, token(chain, ":"), suite):
        # A branch on the line of the `if`, as in `if x: return`, does not show the indentation.
        return indentation_step(indent)
    return unit.indent_of(suite.start_byte)[len(indent) :]


def _nesting(
    unit: CodeUnit, lines: Lines, moved: Counter[int], chain: Node, clauses: list[Node]
) -> Iterator[Edit]:
    """Yield the edits that nest each `elif` in the one before, and count the new levels in `moved`."""
    step = _step(unit, chain)
    rows = [clause.start_point.row for clause in clauses]
    for row in range(rows[0] + 1, chain.end_point.row + 1):
        depth = sum(1 for start in rows if start < row)
        moved[row] += depth
        # Lines inside brackets may be indented less, and then stay as they are.
        if lines.may_move(row) and lines.indent(row).startswith(unit.indent_of(chain.start_byte)):
            yield Edit(lines.starts[row], lines.starts[row], (step * depth,))
    for depth, clause in enumerate(clauses):
        start = clause.start_byte
        # The white space before `elif` is copied together with the indentation that other rewrites and the
        # edits above insert. At the top level there is no white space, and no other rewrite indents the line.
        before = (Span(line_start(unit, start), start),) if unit.indent_of(start) else (step * depth,)
        new_line = (b"else:" + unit.newline, *before, step + b"if")
        yield Edit(start, start + len(b"elif"), new_line)


def reverse_if(unit: CodeUnit) -> Iterator[Site | SkippedSite]:
    """Find the `if` statements with an `else`."""
    found = captures(unit, "(if_statement) @if [(global_statement) (nonlocal_statement)] @declaration")
    declared = [node.start_byte for node in found.get("declaration", [])]
    for node in reversed(found.get("if", [])):
        others = [child for child in node.children if child.type in ("elif_clause", "else_clause")]
        if not others:
            continue
        if others[0].type == "elif_clause":
            yield SkippedSite(node, "the if has an elif")
        elif not starts_line(unit, others[0]):
            yield SkippedSite(node, "a line before the else ends with a backslash")
        elif any(node.start_byte < start < node.end_byte for start in declared):
            yield SkippedSite(node, "a branch declares names, which has to come before their uses")
        else:
            first, second = token(node, ":").end_byte, token(others[0], ":").end_byte
            # The first branch ends with the line before `else`, so that comments after its last statement
            # move along.
            first_end = line_end(unit, line_start(unit, others[0].start_byte) - 1)
            second_end = statement_end(unit, node)
            suites = (Span(second, second_end), Span(first_end, second), Span(first, first_end))
            yield Site(node, (*negation(unit, required(node, "condition")), Edit(first, second_end, suites)))


def negation(unit: CodeUnit, condition: Node) -> Iterator[Edit]:
    """Yield the edits that negate a condition: `not a or b` becomes `a and not b`.

    The new condition is truthy exactly if the old one is falsy, but its value need not be a bool.
    """
    nodes = [condition]
    while nodes:
        node = nodes.pop()
        operator = _operator(unit, node)
        if node.type == "parenthesized_expression" and len(node.named_children) == 1:
            nodes += node.named_children
        elif node.type == "boolean_operator":
            operator = required(node, "operator")
            yield _replace(unit, operator.start_byte, operator.end_byte, _OPPOSITE[unit.text_of(operator)])
            for operand in (required(node, "left"), required(node, "right")):
                # An `and` inside an `or` becomes an `or` inside an `and`.
                if operand.type == "boolean_operator" and required(operand, "operator").type != operator.type:
                    yield _replace(unit, operand.start_byte, operand.start_byte, b"(")
                    yield _replace(unit, operand.end_byte, operand.end_byte, b")")
                nodes.append(operand)
        elif operator is not None and node.type == "not_operator":
            yield Edit(node.start_byte, required(node, "argument").start_byte, ())
        elif operator is not None:
            opposite = _OPPOSITE[b" ".join(unit.text_of(operator).split())]
            yield _replace(unit, operator.start_byte, operator.end_byte, opposite)
        elif node.type in _TIGHT:
            yield _replace(unit, node.start_byte, node.start_byte, b"not ")
        else:
            yield _replace(unit, node.start_byte, node.start_byte, b"not (")
            yield _replace(unit, node.end_byte, node.end_byte, b")")


def _operator(unit: CodeUnit, node: Node) -> Node | None:
    """Return the operator, such as `is`, by whose change an expression can be negated; None if none."""
    if node.type == "not_operator":
        # The comment would be removed together with the `not`.
        between = unit.text[node.start_byte + len(b"not") : required(node, "argument").start_byte]
        return None if b"#" in between else node.children[0]
    operators = node.children_by_field_name("operators") if node.type == "comparison_operator" else []
    if len(operators) != 1 or b" ".join(unit.text_of(operators[0]).split()) not in _OPPOSITE:
        return None
    return operators[0]


def _replace(unit: CodeUnit, start: int, end: int, text: bytes) -> Edit:
    """Return the edit that replaces a range, with spaces where two words would merge."""
    return Edit(start, end, pad(unit, start, end, text))


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
    kept = [span_of(node) for name in ("shown", "annotation") for node in found.get(name, [])]
    scopes: Scopes | None = None
    for node in reversed(found.get("compare", [])):
        tokens = node.children_by_field_name("operators")
        texts = [b" ".join(unit.text_of(token).split()) for token in tokens]
        if not any(text in operators for text in texts):
            continue
        sides = [child for child in children(node) if child not in tokens]
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
        span_of(right),
        Span(left.end_byte, token.start_byte),
        operator,
        Span(token.end_byte, right.start_byte),
        span_of(left),
    )
    return Edit(*span_of(node), pad(unit, node.start_byte, node.end_byte, *parts))


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
