"""Search for the calls of a Python function that pass a parameter by its name, such as `f(x=1)`."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from simllm.perturb.code.code_unit import CodeUnit
from simllm.perturb.code.python.python_name_resolution import Scopes, Variable
from simllm.perturb.code.python.python_parsing import captures, field


class Calls:
    """An index of the calls in the parsed code, to find all calls of a function.

    Args:
        unit: The parsed code.
        scopes: The scopes and variables of the code.
    """

    def __init__(self, unit: CodeUnit, scopes: Scopes) -> None:
        self._unit = unit
        self._scopes = scopes
        found = captures(unit, "(call) @call (attribute) @attribute")
        self._by_callee = {field(call, "function").start_byte: call for call in found.get("call", [])}
        self._attributes = found.get("attribute", [])

    def keywords(self, function: Node, parameter: str) -> Iterator[Node]:
        """Find all keyword arguments that pass a given parameter of a function, such as `x` in `f(x=1)`.

        If the parameter is renamed, the identifiers of these arguments must change, too.

        Args:
            function: The definition of the function.
            parameter: The name of the parameter.

        Yields:
            The identifier of each such argument.
        """
        variable = self._scopes.at(field(function, "name"))
        for use in variable.uses if variable else []:
            call = self._call_of(use.node)
            yield from self._keywords(call, parameter) if call else []

    def why_open(self, function: Variable, parameter: str) -> str | None:
        """Return the reason why the uses of a function make it unsafe to rename one of its parameters.

        If a parameter is renamed, calls that pass the parameter by name must be changed, too. For a plain
        call such as `f(x=1)`, this is safe: the keyword `x` is renamed. Other uses are unsafe. For example, a
        function that is stored in a list may be called from anywhere, and `f(**options)` may pass any
        parameter. A function that is defined more than once is unsafe, too.

        Args:
            function: The variable that holds the function.
            parameter: The name of the parameter.

        Returns:
            The reason; None if no use is unsafe.
        """
        if sum(use.role == "function" for use in function.uses) != 1:
            return "the function is defined more than once"
        for use in function.uses:
            call = self._call_of(use.node)
            if use.role not in ("function", "read") or (use.role == "read" and call is None):
                return "the function is used without being called"
            if call and _unpacks(call):
                return "a call of the function unpacks keywords"
        is_own = self._unit.is_function and function.scope is self._scopes.module
        return self._why_open_method(function.name.encode(), parameter) if is_own else None

    def _why_open_method(self, name: bytes, parameter: str) -> str | None:
        """Search a function `run` for uses such as `x.run(y=1)`, which forbid renaming its parameter `y`.

        The parsed code is a single function, perhaps a method of an unknown class. So if the function is
        called `run`, `x.run` in its body may be a recursive use. These uses forbid the renaming:

        - the calls `x.run(y=1)` and `x.run(**options)`, because they pass `y` by its name, or may do so
        - `f = x.run`, without a call, because `f(y=1)` may follow

        Uses of `super().run` are ignored.

        Args:
            name: The name of the function.
            parameter: The name of the parameter.

        Returns:
            The reason why the parameter must not be renamed; None if the function has no such use.
        """
        for attribute in self._attributes:
            if self._unit.text_of(field(attribute, "attribute")) != name:
                continue
            if self._unit.text_of(field(attribute, "object")) == b"super()":
                continue
            call = self._call_of(attribute)
            if call is None:
                return "an attribute of the same name is used without being called"
            if _unpacks(call) or any(self._keywords(call, parameter)):
                return "a call of an attribute of the same name passes the parameter by its name"
        return None

    def is_called_at_once(self, function: Node) -> bool:
        """Return whether a lambda is called directly, without keyword arguments, as in `(lambda x: x)(1)`.

        The parameters of such a lambda can be renamed, because no call can pass them by name.
        """
        parent = function.parent
        if parent is None or parent.type != "parenthesized_expression":
            return False
        call = self._by_callee.get(parent.start_byte)
        if call is None or field(call, "function") != parent:
            return False
        passed = field(call, "arguments").children
        return not any(node.type in ("keyword_argument", "dictionary_splat") for node in passed)

    def _call_of(self, callee: Node) -> Node | None:
        """Return the call `f(x)` to which the callee `f` belongs.

        Args:
            callee: An identifier or attribute.

        Returns:
            The syntax node of the call; None if `callee` is not called.
        """
        call = self._by_callee.get(callee.start_byte)
        return call if call and field(call, "function") == callee else None

    def _keywords(self, call: Node, parameter: str) -> Iterator[Node]:
        """Yield the identifier of a call's keyword argument for a given parameter, as `x` in `f(x=1)`.

        Nothing is yielded if the call has no such argument.
        """
        for node in field(call, "arguments").children:
            if (
                node.type == "keyword_argument"
                and self._unit.text_of(field(node, "name")) == parameter.encode()
            ):
                yield field(node, "name")


def _unpacks(call: Node) -> bool:
    """Return whether a call unpacks a mapping into keyword arguments, as in `f(**options)`."""
    return any(node.type == "dictionary_splat" for node in field(call, "arguments").children)
