"""The rewrite rule expand-compound for Java: the compound assignment `x += e` becomes `x = x + (e)`.

Other compound operators, such as `<<=`, are treated in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator

from simllm.perturb.code.code_unit import CodeUnit, Site, SkippedSite
from simllm.perturb.code.java.java_parsing import JavaUnit, find_nodes, required
from simllm.perturb.code.java.java_type_inference import PRIMITIVES, is_literal, type_of
from simllm.perturb.code.java.java_variable_references import variable_of
from simllm.perturb.code.source_edits import Edit

_WIDER = {  # for each type of `x`, the types of `e` for which `x = x + e` needs no cast
    "int": frozenset(("byte", "short", "char", "int")),
    "long": frozenset(("byte", "short", "char", "int", "long")),
    "float": frozenset(("byte", "short", "char", "int", "long", "float")),
    "double": PRIMITIVES - {"boolean"},
    "boolean": frozenset(("boolean",)),
}


def expand_compound(unit: CodeUnit) -> Iterator[Site | SkippedSite]:
    """Find the compound assignments `x += e` to local variables that can be rewritten as `x = x + (e)`.

    Yields:
        A `Site` (with the edits) for each compound assignment that can be rewritten safely; a `SkippedSite`
        (with the reason) for each that cannot.
    """
    assert isinstance(unit, JavaUnit)
    for node in find_nodes(unit.root, "assignment_expression"):
        operator = required(node, "operator")
        if operator.type == "=":
            continue
        left, right = required(node, "left"), required(node, "right")
        variable = variable_of(unit, left) if left.type == "identifier" else None
        if variable is None or variable.kind == "field":
            yield SkippedSite(node, "the left side is no local variable")
        elif not _needs_no_cast(operator.type, type_of(unit, left), type_of(unit, right)):
            yield SkippedSite(node, "the types may need a cast")
        else:
            atom = is_literal(right) or right.type in ("identifier", "parenthesized_expression")
            sign = operator.type[:-1].encode()
            sign += b" " * (unit.text[operator.end_byte :][:1] in (b"+", b"-"))
            edits = [
                Edit(operator.start_byte, operator.end_byte, (b"= " + unit.text_of(left) + b" " + sign,))
            ]
            if not atom:
                edits.append(Edit(right.start_byte, right.start_byte, (b"(",)))
                edits.append(Edit(right.end_byte, right.end_byte, (b")",)))
            yield Site(node, tuple(edits))


def _needs_no_cast(operator: str, left: str, right: str) -> bool:
    """Return whether `x += e` can certainly be rewritten as `x = x + e` without a cast.

    For example, the result is False if `x` is a byte. Java then adds a cast to `x += 1`, but not to
    `x = x + 1`, which would not compile. Other operators are treated in the same way: `x *= e` would become
    `x = x * e`.

    Args:
        operator: The compound operator, such as "+=" or "*=".
        left: The type of `x`.
        right: The type of `e`; empty if it is unknown.
    """
    if left == "String":
        return operator == "+="
    if operator in ("<<=", ">>=", ">>>="):
        return left in ("int", "long") and right in _WIDER["long"]
    return right in _WIDER.get(left, ())
