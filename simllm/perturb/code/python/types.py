"""Kinds of the values of Python variables: proven ones, on which rules rely, and guesses, for new names."""

from __future__ import annotations

from collections.abc import Iterable

from tree_sitter import Node

from simllm.perturb.code.python.parsing import children, required
from simllm.perturb.code.python.scopes import Scopes, Variable
from simllm.perturb.code.units import CodeUnit
from simllm.perturb.code.values import kind_of_type

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


_TEXT_METHODS = frozenset(
    "capitalize casefold endswith format isalpha isdigit isspace join lower lstrip replace rstrip startswith "
    "strip title upper zfill".split()
)
_LIST_METHODS = frozenset("append appendleft extend insert popleft reverse sort".split())
_MAP_METHODS = frozenset("items keys setdefault values".split())
# What functions and methods of these names return.
_RETURNED = {
    **dict.fromkeys("abs count float find id index int len ord pow rfind round sum".split(), "number"),
    **dict.fromkeys("bin chr hex input repr str".split(), "text"),
    **dict.fromkeys(_TEXT_METHODS - {"endswith", "startswith"}, "text"),
    **dict.fromkeys("all any bool endswith isinstance startswith".split(), "truth"),
    **dict.fromkeys("list set sorted split splitlines tuple".split(), "list"),
    **dict.fromkeys("dict defaultdict Counter".split(), "map"),
}
_LITERALS = {
    **dict.fromkeys(("integer", "float"), "number"),
    **dict.fromkeys(("string", "concatenated_string"), "text"),
    **dict.fromkeys(("true", "false", "comparison_operator", "not_operator"), "truth"),
    **dict.fromkeys(("list", "set", "tuple", "list_comprehension", "set_comprehension"), "list"),
    **dict.fromkeys(("dictionary", "dictionary_comprehension"), "map"),
}
_ARITHMETIC = frozenset("- // / ** & | ^ << >>".split())
_ANNOTATED = ("typed_parameter", "typed_default_parameter", "assignment")


class ValueGuesses:
    """Guesses of the kinds of values, for names only: `simllm.perturb.code.values` lists the kinds."""

    def __init__(self, unit: CodeUnit, scopes: Scopes) -> None:
        self._unit = unit
        self._scopes = scopes

    def kind(self, variable: Variable) -> str:
        """Guess the kind of the values of a variable; empty if all hints are missing, or they differ."""
        annotations = {self._annotated(use.node) for use in variable.uses} - {""}
        if annotations:
            return annotations.pop() if len(annotations) == 1 else ""
        found = {hint for use in variable.uses if (hint := self._hint(use.node, use.role))}
        if found == {"list", "text"} or found == {"map", "list"}:
            # `len(x)` and `x[0]` hold for texts and maps, too.
            found -= {"list"}
        return found.pop() if len(found) == 1 else ""

    def _annotated(self, node: Node) -> str:
        parent = node.parent
        if parent is None or parent.type not in _ANNOTATED or parent.child_by_field_name("type") is None:
            return ""
        written = self._unit.text_of(required(parent, "type")).decode().strip("\"'")
        if written.startswith("Optional["):
            written = written[len("Optional[") : -1]
        return kind_of_type(written.removesuffix("| None"))

    def _hint(self, node: Node, role: str) -> str:
        """Return what one use of a variable tells about the kind of its values."""
        parent = node.parent
        if parent is None:
            return ""
        if role == "bind":
            return self._bound(node, parent)
        if parent.type == "default_parameter" and parent.child_by_field_name("name") == node:
            return self._value(required(parent, "value"))
        if parent.type == "attribute" and required(parent, "object") == node:
            return self._of_method(self._unit.text_of(required(parent, "attribute")).decode())
        if parent.type == "subscript" and required(parent, "value") == node:
            return "list"
        if parent.type in ("for_statement", "for_in_clause") and parent.child_by_field_name("right") == node:
            return "list"
        if parent.type == "argument_list" and parent.parent is not None:
            return {"len": "list", "sorted": "list", "sum": "list", "range": "number", "abs": "number"}.get(
                self._called(parent.parent), ""
            )
        if parent.type == "binary_operator":
            return self._in_arithmetic(node, parent)
        if parent.type == "comparison_operator":
            others = [child for child in parent.named_children if child != node]
            return next((kind for child in others if (kind := self._value(child)) in ("number", "text")), "")
        return "number" if parent.type == "unary_operator" else ""

    def _bound(self, node: Node, parent: Node) -> str:
        if parent.type in ("for_statement", "for_in_clause"):
            is_range = self._called(required(parent, "right")) == "range"
            return "number" if is_range else ""
        if parent.type == "pattern_list" and parent.parent is not None:
            outer = parent.parent
            if outer.type in ("for_statement", "for_in_clause"):
                is_index = parent.named_children[0] == node
                return "number" if is_index and self._called(required(outer, "right")) == "enumerate" else ""
            value = _assigned(outer)
            if value is None or len(value.named_children) != len(parent.named_children):
                return ""
            return self._value(value.named_children[parent.named_children.index(node)])
        if parent.type == "augmented_assignment":
            return "number" if required(parent, "operator").type.removesuffix("=") in _ARITHMETIC else ""
        value = _assigned(parent)
        return self._value(value) if value else ""

    def _value(self, node: Node) -> str:
        """Return the kind of the value of an expression."""
        while node.type == "parenthesized_expression" and children(node):
            node = children(node)[0]
        if node.type == "unary_operator":
            return "number"
        if node.type == "binary_operator":
            sides = {self._value(required(node, side)) for side in ("left", "right")}
            return (
                "number" if required(node, "operator").type in _ARITHMETIC else (sides - {""} or {""}).pop()
            )
        return _RETURNED.get(self._called(node), "") or _LITERALS.get(node.type, "")

    def _called(self, node: Node) -> str:
        """Return the name of the function or method that an expression calls; empty for other expressions."""
        if node.type != "call":
            return ""
        function = required(node, "function")
        named = required(function, "attribute") if function.type == "attribute" else function
        return self._unit.text_of(named).decode()

    def _of_method(self, name: str) -> str:
        for kind, methods in (("text", _TEXT_METHODS), ("list", _LIST_METHODS), ("map", _MAP_METHODS)):
            if name in methods:
                return kind
        return ""

    def _in_arithmetic(self, node: Node, parent: Node) -> str:
        operator = required(parent, "operator").type
        other = next(child for side in ("left", "right") if (child := required(parent, side)) != node)
        if operator in _ARITHMETIC:
            return "number"
        # `x + 1` and `x % 2` are arithmetic; `x + "s"`, `x * 2` and `text % x` may be something else.
        known = self._value(other)
        if operator == "+" and known in ("number", "text"):
            return known
        return "number" if operator == "%" and required(parent, "left") == node and known == "number" else ""
