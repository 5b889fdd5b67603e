"""Inference of the types of Java expressions, such as `int` for `a.length + 1`."""

from __future__ import annotations

from tree_sitter import Node

from simllm.perturb.code.java.java_name_resolution import Variable
from simllm.perturb.code.java.java_parsing import JavaUnit, children, field, required, without_parentheses
from simllm.perturb.code.java.java_variable_references import variable_of

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
            return _inferred(unit, variable) if variable.type == "var" else variable.type
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
        receiver = field(node, "object")
        if receiver is not None and type_of(unit, receiver) == "String":
            return _STRING_METHODS.get(unit.text_of(required(node, "name")).decode(), "")
    return ""


def _inferred(unit: JavaUnit, variable: Variable) -> str:
    """Return the type of a variable declared with `var`, if its initial value is a literal."""
    declarator = variable.declaration.parent
    value = field(declarator, "value") if declarator is not None else None
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
