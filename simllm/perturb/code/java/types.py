"""Types of Java expressions, such as `int` for `a.length + 1`, and what their evaluation may do."""

from __future__ import annotations

import re

from tree_sitter import Node

from simllm.perturb.code.java.parsing import (
    JavaUnit,
    children,
    field_child,
    required,
    variable_of,
    walk,
    without_parentheses,
)
from simllm.perturb.code.java.scopes import Variable

INTEGERS = frozenset(("byte", "short", "char", "int", "long"))
PRIMITIVES = INTEGERS | {"float", "double", "boolean"}
# Binary numeric promotion: the first type that occurs, otherwise `int`.
_PROMOTED = ("double", "float", "long")
_LITERALS = {
    "decimal_integer_literal": "int",
    "hex_integer_literal": "int",
    "octal_integer_literal": "int",
    "binary_integer_literal": "int",
    "decimal_floating_point_literal": "double",
    "hex_floating_point_literal": "double",
    "character_literal": "char",
    "string_literal": "String",
    "true": "boolean",
    "false": "boolean",
    "null_literal": "null",
}
_COMPARISONS = frozenset(("<", "<=", ">", ">=", "==", "!=", "&&", "||"))
_STRING_METHODS = {
    "length": "int",
    "indexOf": "int",
    "lastIndexOf": "int",
    "charAt": "char",
    "compareTo": "int",
}


def type_of(unit: JavaUnit, node: Node) -> str:
    """Return the type of an expression in Java's notation, such as `int[]`; empty if it is unknown."""
    node = without_parentheses(node)
    kind = node.type
    if kind in _LITERALS:
        suffix = unit.text_of(node)[-1:].lower()
        if kind.endswith("integer_literal") and suffix == b"l":
            return "long"
        return "float" if kind == "decimal_floating_point_literal" and suffix == b"f" else _LITERALS[kind]
    if kind in ("identifier", "field_access"):
        variable = variable_of(unit, node)
        if variable is not None:
            kind = _inferred(unit, variable) if variable.type == "var" else variable.type
            return "" if kind.startswith("String") and unit.hides_string else kind
        is_length = kind == "field_access" and unit.text_of(required(node, "field")) == b"length"
        return "int" if is_length and type_of(unit, required(node, "object")).endswith("[]") else ""
    if kind == "array_access":
        array = type_of(unit, required(node, "array"))
        return array[:-2] if array.endswith("[]") else ""
    if kind == "cast_expression":
        return unit.text_of(required(node, "type")).decode()
    # The value of an assignment has the type of its target.
    if kind == "assignment_expression":
        return type_of(unit, required(node, "left"))
    if kind in ("unary_expression", "update_expression"):
        operand = type_of(unit, children(node)[0])
        if kind == "update_expression" or operand == "boolean":
            return operand
        # Unary operators promote, too: `-b` is an `int` for a byte `b`.
        return _promote(operand, "int")
    if kind == "instanceof_expression":
        return "boolean"
    if kind == "binary_expression":
        return _binary_type(unit, node)
    if kind == "method_invocation":
        receiver = field_child(node, "object")
        if receiver is not None and type_of(unit, receiver) == "String":
            return _STRING_METHODS.get(unit.text_of(required(node, "name")).decode(), "")
    return ""


def _inferred(unit: JavaUnit, variable: Variable) -> str:
    """Return the type of a variable declared with `var`, if its initial value is a literal."""
    declarator = variable.declaration.parent
    value = field_child(declarator, "value") if declarator is not None else None
    return type_of(unit, value) if value is not None and value.type in _LITERALS else ""


def _binary_type(unit: JavaUnit, node: Node) -> str:
    operator = required(node, "operator").type
    if operator in _COMPARISONS:
        return "boolean"
    left, right = type_of(unit, required(node, "left")), type_of(unit, required(node, "right"))
    if operator in ("<<", ">>", ">>>"):
        return _promote(left, "int")
    if operator == "+" and "String" in (left, right):
        return "String"
    return "boolean" if left == right == "boolean" else _promote(left, right)


def _promote(left: str, right: str) -> str:
    """Return the type of an arithmetic result by binary numeric promotion; empty for other operands."""
    if not {left, right} <= PRIMITIVES - {"boolean"}:
        return ""
    return next((name for name in _PROMOTED if name in (left, right)), "int")


def is_literal(node: Node) -> bool:
    """Return whether an expression is a literal; it may have a sign and parentheses."""
    node = without_parentheses(node)
    if node.type == "unary_expression" and node.children[0].type in ("-", "+"):
        node = children(node)[0]
    return node.type in _LITERALS


def is_primitive_local(unit: JavaUnit, node: Node) -> bool:
    """Return whether an expression names a local variable or parameter that has a primitive type."""
    node = without_parentheses(node)
    variable = variable_of(unit, node) if node.type == "identifier" else None
    return variable is not None and variable.kind != "field" and type_of(unit, node) in PRIMITIVES


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
