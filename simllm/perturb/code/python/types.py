"""Kinds of the values of local Python variables: always integers, or always immutable."""

from __future__ import annotations

from collections.abc import Iterable

from tree_sitter import Node

from simllm.perturb.code.python.parsing import children, required
from simllm.perturb.code.python.scopes import Scopes, Variable
from simllm.perturb.code.units import CodeUnit

_PLAIN_LITERALS = frozenset("float string concatenated_string true false none".split())
_INTEGER_OPERATORS = frozenset("+ - * // % & | ^ << >>".split())
_PLAIN_OPERATORS = _INTEGER_OPERATORS | {"/", "**"}
# Builtins that return an int, whatever the arguments.
_INTEGER_CALLS = ("len", "int", "ord", "hash", "id")
# Builtins that return an int if all arguments are ints.
_CHOOSING_CALLS = ("abs", "min", "max")
# Deeper expressions count as unknown, because the recursion is limited.
_DEEPEST = 50


class LocalValues:
    """The kinds of the values of local variables."""

    def __init__(self, unit: CodeUnit, scopes: Scopes) -> None:
        self._unit = unit
        self._scopes = scopes
        # All variables begin as integers, and kinds are weakened until nothing changes. The other way round,
        # `i = i + 1` would never become an integer.
        self._kinds = {variable: "integer" for variable in scopes.variables if self._is_local(variable)}
        changed = True
        while changed:
            changed = False
            for variable in list(self._kinds):
                kind = self._kind_of_bindings(variable)
                if kind != self._kinds[variable]:
                    changed = True
                    if kind is None:
                        del self._kinds[variable]
                    else:
                        self._kinds[variable] = kind

    def kind(self, node: Node, depth: int = 0) -> str | None:
        """Return the kind of an expression's value; `depth` counts the enclosing expressions."""
        if depth > _DEEPEST:
            return None
        if node.type == "integer":
            # tree-sitter counts complex literals such as `1j` as integers.
            return "plain" if self._unit.text_of(node)[-1:] in b"jJ" else "integer"
        if node.type == "identifier":
            variable = self._scopes.at(node)
            return self._kinds.get(variable) if variable else None
        if node.type in _PLAIN_LITERALS:
            # `__format__` in an f-string may return a subclass of str.
            is_formatted = b"{" in self._unit.text_of(node)
            return None if is_formatted else "plain"
        if node.type == "parenthesized_expression":
            inner = children(node)
            return self.kind(inner[0], depth + 1) if len(inner) == 1 else None
        if node.type == "call":
            return self._kind_of_call(node, depth + 1)
        if node.type in ("conditional_expression", "boolean_operator"):
            inner = children(node)
            return _common(self.kind(child, depth + 1) for child in (inner[0], inner[-1]))
        if node.type == "unary_operator":
            return self.kind(required(node, "argument"), depth + 1)
        if node.type == "binary_operator":
            left = self.kind(required(node, "left"), depth + 1)
            right = left and self.kind(required(node, "right"), depth + 1)
            return _combine(required(node, "operator").type, left, right)
        return None

    def is_call_of(self, node: Node, builtin: str) -> bool:
        """Return whether an expression calls the builtin function with a given name."""
        if node.type != "call":
            return False
        function = required(node, "function")
        return (
            function.type == "identifier"
            and self._unit.text_of(function) == builtin.encode()
            and self._scopes.is_builtin(function)
        )

    def _kind_of_call(self, node: Node, depth: int) -> str | None:
        """Return "integer" if a call certainly returns an integer, as `len(x)` does; otherwise None."""
        if any(self.is_call_of(node, name) for name in _INTEGER_CALLS):
            return "integer"
        if not any(self.is_call_of(node, name) for name in _CHOOSING_CALLS):
            return None
        passed = required(node, "arguments").named_children
        return "integer" if all(self.kind(child, depth) == "integer" for child in passed) else None

    def _counts(self, loop: Node) -> bool:
        """Return whether a loop iterates over `enumerate(...)`, and its counter is certainly an integer."""
        if loop.type != "for_statement" or loop.children[0].type == "async":
            return False
        call = required(loop, "right")
        passed = required(call, "arguments").named_children if self.is_call_of(call, "enumerate") else []
        return len(passed) == 1 or (len(passed) == 2 and self.kind(passed[1]) == "integer")

    def _is_local(self, variable: Variable) -> bool:
        """Return whether a variable is local to a function, and gets all its values from assignments."""
        return (
            variable.scope.node.type == "function_definition"
            and self._scopes.is_known(variable)
            and all(use.role in ("read", "bind", "declare", "delete") for use in variable.uses)
        )

    def _kind_of_bindings(self, variable: Variable) -> str | None:
        """Return the common kind of all values that are assigned to a variable."""
        return _common(self._kind_of_binding(use.node) for use in variable.uses if use.role == "bind")

    def _kind_of_binding(self, target: Node) -> str | None:
        """Return the kind of the value that an assignment, loop or `:=` gives to its target."""
        parent = target.parent
        if parent is None:
            return None
        if parent.type == "named_expression":
            return self.kind(required(parent, "value"))
        if parent.type == "for_statement":
            is_async = parent.children[0].type == "async"
            return "integer" if not is_async and self.is_call_of(required(parent, "right"), "range") else None
        if parent.type == "augmented_assignment":
            operator = required(parent, "operator").type.removesuffix("=")
            return _combine(operator, self.kind(target), self.kind(required(parent, "right")))
        if parent.type == "pattern_list" and parent.parent is not None:
            if self._counts(parent.parent):
                return "integer" if parent.named_children[0] == target else None
            # In `a, b = c, d`, each target gets the value at its place.
            value = _assigned(parent.parent)
            targets, values = parent.named_children, value.named_children if value else []
            if value is None or value.type not in ("expression_list", "tuple") or len(targets) != len(values):
                return None
            if any(node.type in ("list_splat", "list_splat_pattern", "comment") for node in targets + values):
                return None
            return self.kind(values[targets.index(target)])
        if parent.type == "assignment" and parent.child_by_field_name("right") is None:
            # An annotation without a value binds nothing, so it weakens no kind.
            return "integer"
        value = _assigned(parent)
        return self.kind(value) if value else None


def _assigned(assignment: Node) -> Node | None:
    """Return the right side of an assignment; for `a = b = value`, this is `value`."""
    value: Node | None = assignment
    while value is not None and value.type == "assignment":
        value = value.child_by_field_name("right")
    return value if assignment.type == "assignment" else None


def _common(kinds: Iterable[str | None]) -> str | None:
    """Return the kind that all values have."""
    found = set(kinds)
    if None in found:
        return None
    return "plain" if "plain" in found else "integer"


def _combine(operator: str, left: str | None, right: str | None) -> str | None:
    """Return the kind of the result of a binary operator, from the kinds of its operands."""
    if left is None or right is None:
        return None
    if left == right == "integer" and operator in _INTEGER_OPERATORS:
        return "integer"
    # `2 ** -1` and `1 / 2` are floats.
    return "plain" if operator in _PLAIN_OPERATORS else None
