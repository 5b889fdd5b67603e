"""Search for the calls of a Python function that pass a parameter by its name, such as `f(x=1)`."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from simllm.perturb.code.code_unit import CodeUnit
from simllm.perturb.code.python.python_name_resolution import Scopes, Variable
from simllm.perturb.code.python.python_parsing import captures, field


class Calls:
    """An index of the calls in the parsed code."""

    def __init__(self, unit: CodeUnit, scopes: Scopes) -> None:
        self._unit = unit
        self._scopes = scopes
        found = captures(unit, "(call) @call (attribute) @attribute")
        self._by_callee = {field(call, "function").start_byte: call for call in found.get("call", [])}
        self._attributes = found.get("attribute", [])

    def keywords(self, function: Node, parameter: str) -> Iterator[Node]:
        """Yield the identifier of each keyword argument for a parameter, as `x` in `f(x=1)`."""
        variable = self._scopes.at(field(function, "name"))
        for use in variable.uses if variable else []:
            call = self._call_of(use.node)
            yield from self._keywords(call, parameter) if call else []

    def why_open(self, function: Variable, parameter: str) -> str | None:
        """Return the reason why a use of a function forbids renaming a parameter; None if none does.

        In plain calls such as `f(x=1)`, the keyword can be renamed. A function that is passed on may be
        called from anywhere, and `f(**options)` may pass any parameter.
        """
        if sum(use.role == "function" for use in function.uses) != 1:
            return "the function is defined more than once"
        for use in function.uses:
            call = self._call_of(use.node)
            if use.role not in ("function", "read") or (use.role == "read" and call is None):
                return "the function is used without being called"
            if call and _unpacks(call):
                return "a call of the function unpacks keywords"
        # Only a single function, parsed alone, may be a method of an unknown class.
        is_own = self._unit.is_function and function.scope is self._scopes.module
        return self._why_open_method(function.name.encode(), parameter) if is_own else None

    def _why_open_method(self, name: bytes, parameter: str) -> str | None:
        """Return the reason why a use such as `x.run(y=1)` forbids renaming `y`; None if none does."""
        # The code may be a method of an unknown class, so `x.run` in its body may be a recursive use.
        # `x.run(y=1)` and `x.run(**options)` pass the parameter by name, and `f(y=1)` may follow `f = x.run`.
        for attribute in self._attributes:
            if self._unit.text_of(field(attribute, "attribute")) != name:
                continue
            # It means the method of another class.
            if self._unit.text_of(field(attribute, "object")) == b"super()":
                continue
            call = self._call_of(attribute)
            if call is None:
                return "an attribute of the same name is used without being called"
            if _unpacks(call) or any(self._keywords(call, parameter)):
                return "a call of an attribute of the same name passes the parameter by its name"
        return None

    def is_called_at_once(self, function: Node) -> bool:
        """Return whether a lambda is called directly, without keyword arguments, as in `(lambda x: x)(1)`."""
        parent = function.parent
        if parent is None or parent.type != "parenthesized_expression":
            return False
        call = self._by_callee.get(parent.start_byte)
        if call is None or field(call, "function") != parent:
            return False
        passed = field(call, "arguments").children
        return not any(node.type in ("keyword_argument", "dictionary_splat") for node in passed)

    def _call_of(self, callee: Node) -> Node | None:
        """Return the call `f(x)` of the identifier or attribute `f`; None if `f` is not called."""
        call = self._by_callee.get(callee.start_byte)
        return call if call and field(call, "function") == callee else None

    def _keywords(self, call: Node, parameter: str) -> Iterator[Node]:
        """Yield the identifier of a call's keyword argument for a parameter, if there is one."""
        for node in field(call, "arguments").children:
            if (
                node.type == "keyword_argument"
                and self._unit.text_of(field(node, "name")) == parameter.encode()
            ):
                yield field(node, "name")


def _unpacks(call: Node) -> bool:
    """Return whether a call unpacks a mapping into keyword arguments, as in `f(**options)`."""
    return any(node.type == "dictionary_splat" for node in field(call, "arguments").children)
