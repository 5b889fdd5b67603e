"""The rule expand-compound for Java: `x += e` becomes `x = x + (e)`, and so for operators such as `<<=`."""

from __future__ import annotations

from collections.abc import Iterator

from simllm.perturb.code.code_unit import CodeUnit, Site, SkippedSite
from simllm.perturb.code.java.java_parsing import JavaUnit, find_nodes, required
from simllm.perturb.code.java.java_type_inference import PRIMITIVES, is_literal, type_of
from simllm.perturb.code.java.java_variable_references import variable_of
from simllm.perturb.code.source_edits import Edit

# For each type of `x`, the types of `e` for which `x = x + e` needs no cast. `byte`, `short` and `char` are
# missing: Java adds a cast to `b += 1`, but `b = b + 1` does not compile.
_WIDER = {
    "int": frozenset(("byte", "short", "char", "int")),
    "long": frozenset(("byte", "short", "char", "int", "long")),
    "float": frozenset(("byte", "short", "char", "int", "long", "float")),
    "double": PRIMITIVES - {"boolean"},
    "boolean": frozenset(("boolean",)),
}


def expand_compound(unit: CodeUnit) -> Iterator[Site | SkippedSite]:
    """Find the compound assignments; only those to local variables can be rewritten."""
    assert isinstance(unit, JavaUnit)
    for node in find_nodes(unit.root, "assignment_expression"):
        operator = required(node, "operator")
        if operator.type == "=":
            continue
        left, right = required(node, "left"), required(node, "right")
        variable = variable_of(unit, left) if left.type == "identifier" else None
        # `a[f()] += 1` evaluates `f()` once, `a[f()] = a[f()] + 1` twice.
        if variable is None or variable.kind == "field":
            yield SkippedSite(node, "the left side is no local variable")
        elif not _needs_no_cast(operator.type, type_of(unit, left), type_of(unit, right)):
            yield SkippedSite(node, "the types may need a cast")
        else:
            atom = is_literal(right) or right.type in ("identifier", "parenthesized_expression")
            sign = operator.type[:-1].encode()
            # `x -=-1` must not become `x = x --1`.
            sign += b" " * (unit.text[operator.end_byte :][:1] in (b"+", b"-"))
            edits = [
                Edit(operator.start_byte, operator.end_byte, (b"= " + unit.text_of(left) + b" " + sign,))
            ]
            if not atom:
                edits.append(Edit(right.start_byte, right.start_byte, (b"(",)))
                edits.append(Edit(right.end_byte, right.end_byte, (b")",)))
            yield Site(node, tuple(edits))


def _needs_no_cast(operator: str, left: str, right: str) -> bool:
    """Return whether `x += e` can certainly be rewritten without a cast, given the operator and two types."""
    # Any value can be joined to a string.
    if left == "String":
        return operator == "+="
    # A shift has the type of its left operand alone.
    if operator in ("<<=", ">>=", ">>>="):
        return left in ("int", "long") and right in _WIDER["long"]
    return right in _WIDER.get(left, ())
