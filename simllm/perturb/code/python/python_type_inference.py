"""Type inference for Python: find local variables whose values are always integers, or always immutable."""

from __future__ import annotations

from collections.abc import Iterable

from tree_sitter import Node

from simllm.perturb.code.code_unit import CodeUnit
from simllm.perturb.code.python.python_name_resolution import Scopes, Variable
from simllm.perturb.code.python.python_parsing import field

_PLAIN_LITERALS = frozenset("float string concatenated_string true false none".split())
_INTEGER_OPERATORS = frozenset("+ - * // % & | ^ << >>".split())
_PLAIN_OPERATORS = _INTEGER_OPERATORS | {"/", "**"}
_INTEGER_CALLS = ("len", "int", "ord", "hash", "id")  # builtins that return an int, whatever the arguments
_CHOOSING_CALLS = ("abs", "min", "max")  # builtins that return an int if all arguments are ints
_DEEPEST = 50  # operators inside operators; deeper expressions count as unknown


class LocalValues:
    """Analysis of local variables: find those whose values are always integers, or always immutable.

    A variable has one of these kinds, or no kind:

    - "integer": All values assigned to the variable are integer literals, numbers from `range` or
      `enumerate`, results of builtins such as `len`, or results of arithmetic on such integers.
    - "plain": All values are immutable, but some are not integers. Plain values are literals such as strings
      and None, or results of arithmetic on literals.

    Args:
        unit: The parsed code.
        scopes: The scopes and variables of the code.
    """

    def __init__(self, unit: CodeUnit, scopes: Scopes) -> None:
        self._unit = unit
        self._scopes = scopes
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
        """Determine whether the value of an expression is certainly an integer, or at least immutable.

        Args:
            node: The expression.
            depth: The depth of the recursion: the number of enclosing expressions that were visited before.
                If it exceeds a limit (`_DEEPEST`), the result is None.

        Returns:
            "integer"; "plain" for other immutable values such as strings; or None if the value may be
            anything.
        """
        if depth > _DEEPEST:
            return None
        if node.type == "integer":
            return "plain" if self._unit.text_of(node)[-1:] in b"jJ" else "integer"
        if node.type == "identifier":
            variable = self._scopes.at(node)
            return self._kinds.get(variable) if variable else None
        if node.type in _PLAIN_LITERALS:
            is_formatted = b"{" in self._unit.text_of(node)  # `__format__` may return a subclass of str
            return None if is_formatted else "plain"
        if node.type == "parenthesized_expression":
            inner = [child for child in node.named_children if child.type != "comment"]
            return self.kind(inner[0], depth + 1) if len(inner) == 1 else None
        if node.type == "call":
            return self._kind_of_call(node, depth + 1)
        if node.type in ("conditional_expression", "boolean_operator"):
            inner = [child for child in node.named_children if child.type != "comment"]
            return _common(self.kind(child, depth + 1) for child in (inner[0], inner[-1]))
        if node.type == "unary_operator":
            return self.kind(field(node, "argument"), depth + 1)
        if node.type == "binary_operator":
            left = self.kind(field(node, "left"), depth + 1)
            right = left and self.kind(field(node, "right"), depth + 1)
            return _combine(field(node, "operator").type, left, right)
        return None

    def is_call_of(self, node: Node, builtin: str) -> bool:
        """Return whether an expression calls the builtin function with a given name."""
        if node.type != "call":
            return False
        function = field(node, "function")
        return (
            function.type == "identifier"
            and self._unit.text_of(function) == builtin.encode()
            and self._scopes.is_builtin(function)
        )

    def _kind_of_call(self, node: Node, depth: int) -> str | None:
        """Return "integer" if a call certainly returns an integer, as `len(x)` does; otherwise None.

        Args:
            node: The call.
            depth: The depth of the call's arguments: the number of expressions around them. If it exceeds a
                limit (`_DEEPEST`), the arguments count as unknown.
        """
        if any(self.is_call_of(node, name) for name in _INTEGER_CALLS):
            return "integer"
        if not any(self.is_call_of(node, name) for name in _CHOOSING_CALLS):
            return None
        passed = field(node, "arguments").named_children
        return "integer" if all(self.kind(child, depth) == "integer" for child in passed) else None

    def _counts(self, loop: Node) -> bool:
        """Return whether a loop iterates over `enumerate(...)`, and its counter is certainly an integer.

        This is True for `enumerate(x)`, and for `enumerate(x, start)` if `start` is certainly an integer.
        """
        if loop.type != "for_statement" or loop.children[0].type == "async":
            return False
        call = field(loop, "right")
        passed = field(call, "arguments").named_children if self.is_call_of(call, "enumerate") else []
        return len(passed) == 1 or (len(passed) == 2 and self.kind(passed[1]) == "integer")

    def _is_local(self, variable: Variable) -> bool:
        """Return whether a variable is local to a function, and gets all its values from assignments.

        Loops, patterns and `:=` count as assignments. The result is False for parameters, imported names, and
        names of nested functions and classes. It is also False if the analysis may have missed a use.
        """
        return (
            variable.scope.node.type == "function_definition"
            and self._scopes.is_known(variable)
            and all(use.role in ("read", "bind", "declare", "delete") for use in variable.uses)
        )

    def _kind_of_bindings(self, variable: Variable) -> str | None:
        """Determine whether all values assigned to a variable are integers, or at least immutable.

        Returns:
            "integer" if all values are integers; "plain" if all are immutable, but not all are known to be
            integers; or None if one of the values may be anything.
        """
        return _common(self._kind_of_binding(use.node) for use in variable.uses if use.role == "bind")

    def _kind_of_binding(self, target: Node) -> str | None:
        """Determine whether an assignment, loop or `:=` gives a variable an integer, or an immutable value.

        Args:
            target: The identifier of the variable in the assignment, loop or `:=`.

        Returns:
            "integer"; "plain" for other immutable values; or None if the value may be anything.
        """
        parent = target.parent
        if parent is None:
            return None
        if parent.type == "named_expression":
            return self.kind(field(parent, "value"))
        if parent.type == "for_statement":
            is_async = parent.children[0].type == "async"
            return "integer" if not is_async and self.is_call_of(field(parent, "right"), "range") else None
        if parent.type == "augmented_assignment":
            operator = field(parent, "operator").type.removesuffix("=")
            return _combine(operator, self.kind(target), self.kind(field(parent, "right")))
        if parent.type == "pattern_list" and parent.parent is not None:
            if self._counts(parent.parent):
                return "integer" if parent.named_children[0] == target else None
            value = _assigned(parent.parent)
            targets, values = parent.named_children, value.named_children if value else []
            if value is None or value.type not in ("expression_list", "tuple") or len(targets) != len(values):
                return None
            if any(node.type in ("list_splat", "list_splat_pattern", "comment") for node in targets + values):
                return None
            return self.kind(values[targets.index(target)])
        if parent.type == "assignment" and parent.child_by_field_name("right") is None:
            return "integer"  # an annotation without a value
        value = _assigned(parent)
        return self.kind(value) if value else None


def _assigned(assignment: Node) -> Node | None:
    """Return the right side of an assignment; for `a = b = value`, this is `value`."""
    value: Node | None = assignment
    while value is not None and value.type == "assignment":
        value = value.child_by_field_name("right")
    return value if assignment.type == "assignment" else None


def _common(kinds: Iterable[str | None]) -> str | None:
    """Determine whether several values are all integers, or at least all immutable.

    Args:
        kinds: For each value, "integer", "plain" (any immutable value), or None if it may be anything.

    Returns:
        "integer" if all values are integers; "plain" if all are integers or plain; otherwise None.
    """
    found = set(kinds)
    if None in found:
        return None
    return "plain" if "plain" in found else "integer"


def _combine(operator: str, left: str | None, right: str | None) -> str | None:
    """Determine whether the value of a binary expression, such as `a + b`, is an integer or immutable.

    The kind of a value is "integer", "plain" (any immutable value), or None (the value may be anything).

    Args:
        operator: The operator, such as "+".
        left: The kind of the left operand.
        right: The kind of the right operand.

    Returns:
        The kind of the expression's value.
    """
    if left is None or right is None:
        return None
    if left == right == "integer" and operator in _INTEGER_OPERATORS:
        return "integer"
    return "plain" if operator in _PLAIN_OPERATORS else None
