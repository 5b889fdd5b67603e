"""Name resolution for Python: the variable to which each identifier refers.

The standard module `symtable` tells to which scope a name belongs.
"""

from __future__ import annotations

import re
import symtable
import warnings
from dataclasses import dataclass, field
from typing import NamedTuple

from tree_sitter import Node

from simllm.perturb.code.code_unit import CodeUnit
from simllm.perturb.code.python.python_parsing import captures
from simllm.perturb.code.python.python_reflection import BINDERS, READERS, mark_frames, mark_reader
from simllm.perturb.code.python.python_scope_tree import Scope, scopes_of
from simllm.perturb.code.python.python_symtable import match_tables

# Names such as `__x`, which Python changes in a class `A` to `_A__x`, and names such as `_A__x`.
_PRIVATE = re.compile(r"(?:__|_+[^_].*__).*(?<!__)")
# Type parameters have a scope of their own, around the scope of the function or class.
_TYPE_PARAMETERS = """
(function_definition type_parameters: (_) @own)
(class_definition type_parameters: (_) @own)
(type_alias_statement left: (_) @own)
"""


class Use(NamedTuple):
    """An occurrence of a variable; `scope` is the innermost scope around it."""

    node: Node
    role: str
    scope: Scope


@dataclass(eq=False)
class Variable:
    """A variable of Python code.

    Attributes:
        scope: The scope to which the variable belongs.
        uses: All occurrences in the order of the source, including those in inner scopes.
    """

    name: str
    scope: Scope
    uses: list[Use] = field(default_factory=list)


class Scopes:
    """All scopes and variables of the parsed code.

    Attributes:
        module: The outermost scope.
        unresolved: The names that could not be resolved to a variable at one or more places.
        attributes: The identifiers that are not variables, such as attributes and keywords of calls.
    """

    def __init__(self, unit: CodeUnit) -> None:
        self.module = scopes_of(unit)
        self.variables: list[Variable] = []
        own = captures(unit, _TYPE_PARAMETERS).get("own", [])
        # The scopes of type parameters are not analysed.
        self.unresolved = {name for node in own for name in re.findall(r"\w+", unit.text_of(node).decode())}
        self.attributes: list[Node] = []
        self._binds_unseen = "star" in captures(unit, "(wildcard_import) @star")
        self._at: dict[int, Variable] = {}
        with warnings.catch_warnings():
            # The warnings are about the user's code, such as invalid escapes in strings.
            warnings.simplefilter("ignore")
            table = symtable.symtable(unit.text, "<code>", "exec")  # type: ignore[arg-type]
        match_tables(self.module, table)
        self._resolve()

    def at(self, node: Node) -> Variable | None:
        """Return the variable to which an identifier refers; None if it could not be determined."""
        return self._at.get(node.start_byte)

    def is_known(self, variable: Variable | None) -> bool:
        """Return whether `variable.uses` certainly has all uses; False for None."""
        return variable is not None and variable.name not in self.unresolved

    def is_builtin(self, node: Node) -> bool:
        """Return whether an identifier certainly refers to a builtin that the code cannot redefine."""
        variable = self.at(node)
        return (
            variable is not None
            and self.is_known(variable)
            and variable.scope is self.module
            # `from x import *` may bind any name, and `globals` and `exec` may do so, too.
            and not self._binds_unseen
            and all(use.role == "read" for use in variable.uses)
        )

    def _resolve(self) -> None:
        """Determine the variable of each identifier, and mark the scopes that reflect."""
        mark_frames(self.module)
        owned: dict[tuple[Scope, str], Variable] = {}
        seen: dict[tuple[Scope, str], Variable | None] = {}
        for scope in self.module.walk():
            for node, name, role in scope.names:
                self._binds_unseen |= name in BINDERS
                if role == "attribute":
                    self.attributes.append(node)
                    continue
                if (scope, name) not in seen:
                    owner = _owner(scope, name, self.module)
                    known = owned.setdefault((owner, name), Variable(name, owner)) if owner else None
                    seen[scope, name] = known
                variable = seen[scope, name]
                if name in READERS and (variable is None or variable.scope is self.module):
                    mark_reader(node, name, scope, self.module)
                if variable is None:
                    self.unresolved.add(name)
                else:
                    variable.uses.append(Use(node, role, scope))
                    self._at[node.start_byte] = variable
        self.variables = list(owned.values())
        for variable in self.variables:
            variable.uses.sort(key=lambda use: use.node.start_byte)


def _owner(scope: Scope, name: str, module: Scope) -> Scope | None:
    """Return the scope to which a name in a scope belongs; None if this cannot be determined."""
    # In a class, Python changes such a name, so two spellings may mean one variable.
    if _PRIVATE.fullmatch(name):
        return None
    at = scope
    # CPython has put the variables of inlined comprehensions into the table of a scope around, so the
    # comprehensions are searched first.
    while at.is_inlined and at.parent is not None:
        if name in at.targets():
            return at
        at = at.parent
    if at is module:
        return module
    if (symbol := at.symbol(name)) is None:
        return None
    if symbol.is_global():
        return module
    if symbol.is_local():
        # An inlined comprehension does not see the names of a class around.
        return None if scope is not at and at.node.type == "class_definition" else at
    # The name is free: it belongs to an enclosing function.
    outer = at.parent
    while outer is not None and outer is not module:
        if outer.is_inlined and name in outer.targets():
            return outer
        if not outer.is_inlined and outer.node.type != "class_definition":
            symbol = outer.symbol(name)
            if symbol is None or symbol.is_local():
                return outer if symbol is not None else None
        outer = outer.parent
    return None
