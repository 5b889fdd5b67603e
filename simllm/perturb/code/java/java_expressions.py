"""Properties of Java expressions: the type, side effects, and whether the evaluation can throw."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from simllm.perturb.code.java.java_name_resolution import Variable
from simllm.perturb.code.java.java_parsing import (
    JavaUnit,
    children,
    field,
    required,
    walk,
    without_parentheses,
)

INTEGERS = frozenset(("byte", "short", "char", "int", "long"))
PRIMITIVES = INTEGERS | {"float", "double", "boolean"}
_PROMOTED = ("double", "float", "long")  # binary numeric promotion: the first type that occurs, else int
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
_NOT_ZERO = re.compile(  # an integer literal: decimal or octal, hexadecimal, or binary
    rb"[-+]?(?:[0_]*+[1-9][0-9_]*+|0[xX][0_]*+[1-9a-fA-F][0-9a-fA-F_]*+|0[bB][0_]*+1[01_]*+)[lL]?"
)
_COMPARISONS = frozenset(("<", "<=", ">", ">=", "==", "!=", "&&", "||"))
_STRING_METHODS = {
    "length": "int",
    "indexOf": "int",
    "lastIndexOf": "int",
    "charAt": "char",
    "compareTo": "int",
}
_EFFECTS = frozenset(
    "method_invocation object_creation_expression array_creation_expression assignment_expression "
    "update_expression switch_expression explicit_constructor_invocation template_expression".split()
)
_NO_CHILDREN = frozenset(("lambda_expression", "class_body"))


def variable_of(unit: JavaUnit, node: Node) -> Variable | None:
    """Return the variable to which an expression such as `i` or `this.i` refers.

    Returns:
        The variable; None if the expression has another form, or if the declaration of the variable is
        unknown.
    """
    node = without_parentheses(node)
    if node.type == "field_access" and required(node, "object").type == "this":
        name = unit.text_of(required(node, "field")).decode()
        body = node.parent
        while body is not None and body.id not in unit.scopes.fields:
            body = body.parent
        return unit.scopes.fields[body.id].get(name) if body is not None else None
    return unit.scopes.meaning.get(node.start_byte) if node.type == "identifier" else None


def type_of(unit: JavaUnit, node: Node) -> str:
    """Return the type of an expression in Java's notation, such as `int`; empty if it is unknown."""
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
            return _inferred(unit, variable) if variable.type == "var" else variable.type
        is_length = kind == "field_access" and unit.text_of(required(node, "field")) == b"length"
        return "int" if is_length and type_of(unit, required(node, "object")).endswith("[]") else ""
    if kind == "array_access":
        array = type_of(unit, required(node, "array"))
        return array[:-2] if array.endswith("[]") else ""
    if kind == "cast_expression":
        return unit.text_of(required(node, "type")).decode()
    if kind == "assignment_expression":
        return type_of(unit, required(node, "left"))
    if kind in ("unary_expression", "update_expression"):
        operand = type_of(unit, children(node)[0])
        if kind == "update_expression" or operand == "boolean":
            return operand
        return _promote(operand, "int")
    if kind == "instanceof_expression":
        return "boolean"
    if kind == "binary_expression":
        return _binary_type(unit, node)
    if kind == "method_invocation":
        receiver = field(node, "object")
        if receiver is not None and type_of(unit, receiver) == "String":
            return _STRING_METHODS.get(unit.text_of(required(node, "name")).decode(), "")
    return ""


def _inferred(unit: JavaUnit, variable: Variable) -> str:
    """Return the type of a variable declared with `var`.

    The type is known only if the initial value is a literal, as in `var i = 0`. Otherwise, the result is
    empty.
    """
    declarator = variable.declaration.parent
    value = field(declarator, "value") if declarator is not None else None
    return type_of(unit, value) if value is not None and value.type in _LITERALS else ""


def _binary_type(unit: JavaUnit, node: Node) -> str:
    """Return the type of a binary expression such as `a + b`; empty if the type is unknown."""
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
    """Return the type of an arithmetic result by the rules of binary numeric promotion.

    Args:
        left: The type of the left operand.
        right: The type of the right operand.

    Returns:
        The type; empty if an operand is not a primitive number.
    """
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


def assigned_variables(unit: JavaUnit, node: Node) -> Iterator[Variable | None]:
    """Yield the target of each assignment inside a syntax node, such as `i` for `i = 0` or `i++`.

    Yields:
        The assigned variable; None if the target is not a known variable, as in `a[0] = 1`.
    """
    for part in walk(node):
        if part.type == "assignment_expression":
            yield variable_of(unit, required(part, "left"))
        elif part.type == "update_expression":
            yield variable_of(unit, children(part)[0])


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
