"""Analysis of Java expressions: whether the evaluation may have side effects or throw an exception."""

from __future__ import annotations

import re

from tree_sitter import Node

from simllm.perturb.code.java.java_parsing import JavaUnit, children, required, walk, without_parentheses
from simllm.perturb.code.java.java_type_inference import PRIMITIVES, type_of

_NOT_ZERO = re.compile(  # an integer literal: decimal or octal, hexadecimal, or binary
    rb"[-+]?(?:[0_]*+[1-9][0-9_]*+|0[xX][0_]*+[1-9a-fA-F][0-9a-fA-F_]*+|0[bB][0_]*+1[01_]*+)[lL]?"
)
_EFFECTS = frozenset(
    "method_invocation object_creation_expression array_creation_expression assignment_expression "
    "update_expression switch_expression explicit_constructor_invocation template_expression".split()
)
_NO_CHILDREN = frozenset(("lambda_expression", "class_body"))


def has_effects(unit: JavaUnit, node: Node) -> bool:
    """Return whether evaluating an expression may have side effects; True if this is unknown."""
    return any(
        part.type in _EFFECTS or _calls_to_string(unit, part) for part in walk(node, not_into=_NO_CHILDREN)
    )


def _calls_to_string(unit: JavaUnit, node: Node) -> bool:
    """Return whether an expression is a string concatenation with `+` that may call `toString` of an object.

    Such a call may have side effects.
    """
    if node.type != "binary_expression" or required(node, "operator").type != "+":
        return False
    types = {type_of(unit, required(node, "left")), type_of(unit, required(node, "right"))}
    return not types <= PRIMITIVES | {"String", "null"}


def can_throw(unit: JavaUnit, node: Node) -> bool:
    """Return whether an expression may throw an exception when it is evaluated; True if this is unknown.

    Call this function only if `has_effects` returns False for the expression, because exceptions from calls
    and assignments are not considered.
    """
    for part in walk(node, not_into=_NO_CHILDREN):
        kind = part.type
        if kind in ("array_access", "cast_expression", "method_reference"):
            if kind != "cast_expression" or type_of(unit, required(part, "value")) not in PRIMITIVES:
                return True
        elif kind == "field_access":
            if required(part, "object").type not in ("this", "super"):
                return True
        elif kind == "identifier":  # an inherited or imported field, which may initialize its class
            if not unit.is_function and part.start_byte not in unit.scopes.meaning:
                return True
        elif kind in ("binary_expression", "unary_expression"):
            if _operator_can_throw(unit, part):
                return True
        elif kind == "ternary_expression":
            return True
    return False


def _operator_can_throw(unit: JavaUnit, node: Node) -> bool:
    """Return whether the operator of an expression may throw an exception.

    An operator throws if it divides an integer by zero. It also throws if an operand has a wrapper type such
    as `Integer`, is null, and must be converted to a primitive value. The result is also True if the type of
    an operand is unknown. Joining strings and comparing with null never throw, so the result is then False.

    Args:
        unit: The parsed code.
        node: The unary or binary expression. Exceptions inside its operands are not examined.
    """
    if node.type == "unary_expression":
        return type_of(unit, children(node)[0]) not in PRIMITIVES
    operator = required(node, "operator").type
    left, right = required(node, "left"), required(node, "right")
    types = {type_of(unit, left), type_of(unit, right)}
    if operator in ("==", "!="):
        return not (types <= PRIMITIVES or "null" in types or (not types & PRIMITIVES and "" not in types))
    if operator == "+" and "String" in types:
        return False
    if operator in ("/", "%") and not (types & {"float", "double"}):
        divisor = unit.text_of(without_parentheses(right))
        return not (types <= PRIMITIVES and _NOT_ZERO.fullmatch(divisor))
    return not types <= PRIMITIVES
