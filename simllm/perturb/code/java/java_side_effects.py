"""Analysis of Java expressions: whether the evaluation may have side effects or throw an exception."""

from __future__ import annotations

import re

from tree_sitter import Node

from simllm.perturb.code.java.java_parsing import JavaUnit, children, required, walk, without_parentheses
from simllm.perturb.code.java.java_type_inference import PRIMITIVES, type_of

# An integer literal other than 0: decimal or octal, hexadecimal, or binary. Possessive quantifiers (`*+`)
# keep the time linear.
_NOT_ZERO = re.compile(
    rb"[-+]?(?:[0_]*+[1-9][0-9_]*+|0[xX][0_]*+[1-9a-fA-F][0-9a-fA-F_]*+|0[bB][0_]*+1[01_]*+)[lL]?"
)
_EFFECTS = frozenset(
    "method_invocation object_creation_expression array_creation_expression assignment_expression "
    "update_expression switch_expression explicit_constructor_invocation template_expression".split()
)
# Evaluating a lambda makes an object, but does not run its body.
_NO_CHILDREN = frozenset(("lambda_expression", "class_body"))


def has_effects(unit: JavaUnit, node: Node) -> bool:
    """Return whether evaluating an expression may have side effects."""
    return any(
        part.type in _EFFECTS or _calls_to_string(unit, part) for part in walk(node, not_into=_NO_CHILDREN)
    )


def _calls_to_string(unit: JavaUnit, node: Node) -> bool:
    """Return whether an expression is a concatenation that may call a `toString` with side effects."""
    if node.type != "binary_expression" or required(node, "operator").type != "+":
        return False
    types = {type_of(unit, required(node, "left")), type_of(unit, required(node, "right"))}
    return not types <= PRIMITIVES | {"String", "null"}


def can_throw(unit: JavaUnit, node: Node) -> bool:
    """Return whether an expression without side effects (see `has_effects`) may throw an exception."""
    for part in walk(node, not_into=_NO_CHILDREN):
        kind = part.type
        if kind in ("array_access", "cast_expression", "method_reference"):
            # Only a cast of a reference can throw: for an object of another class, or a wrapper that is null.
            if kind != "cast_expression" or type_of(unit, required(part, "value")) not in PRIMITIVES:
                return True
        elif kind == "field_access":
            if required(part, "object").type not in ("this", "super"):
                return True
        elif kind == "identifier":
            # An inherited or imported field may initialize its class.
            if not unit.is_function and part.start_byte not in unit.scopes.meaning:
                return True
        elif kind in ("binary_expression", "unary_expression"):
            if _operator_can_throw(unit, part):
                return True
        elif kind == "ternary_expression":
            return True
    return False


def _operator_can_throw(unit: JavaUnit, node: Node) -> bool:
    """Return whether the operator of a unary or binary expression, apart from its operands, may throw."""
    if node.type == "unary_expression":
        return type_of(unit, children(node)[0]) not in PRIMITIVES
    operator = required(node, "operator").type
    left, right = required(node, "left"), required(node, "right")
    types = {type_of(unit, left), type_of(unit, right)}
    if operator in ("==", "!="):
        # Two references are compared without unboxing.
        return not (types <= PRIMITIVES or "null" in types or (not types & PRIMITIVES and "" not in types))
    if operator == "+" and "String" in types:
        return False
    # Division by zero throws for integers only.
    if operator in ("/", "%") and not (types & {"float", "double"}):
        divisor = unit.text_of(without_parentheses(right))
        return not (types <= PRIMITIVES and _NOT_ZERO.fullmatch(divisor))
    # An operand of a wrapper type may be null.
    return not types <= PRIMITIVES
