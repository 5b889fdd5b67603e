"""The tree of scopes of Python code, and the identifiers in each scope."""

from __future__ import annotations

import symtable
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from tree_sitter import Node

from simllm.perturb.code.code_unit import CodeUnit
from simllm.perturb.code.python.python_parsing import captures
from simllm.perturb.code.python.python_roles import BINDING, identifier_roles

# Comprehensions that run where they stand. Python 3.12 and later make them parts of the scope around.
IMMEDIATE = ("list_comprehension", "set_comprehension", "dictionary_comprehension")
_SCOPES = """
[(function_definition) (class_definition) (lambda) (list_comprehension) (set_comprehension)
 (dictionary_comprehension) (generator_expression)] @scope
(default_parameter value: (_) @outside)
(typed_default_parameter value: (_) @outside)
(typed_default_parameter type: (_) @outside)
(typed_parameter type: (_) @outside)
"""


@dataclass(eq=False)
class Scope:
    """A scope of Python code.

    Attributes:
        parent: The enclosing scope; None for the module.
        children: The scopes directly inside.
        names: The syntax node, name and role of each identifier directly in this scope.
        table: CPython's symbol table of this scope; None if it could not be identified.
        is_inlined: Whether the scope is a comprehension without a symbol table of its own, whose variables
            are in the table of the enclosing scope (since Python 3.12).
        reflects: Whether code in this scope, or in a scope inside, may access variables by name at run time.
    """

    node: Node
    parent: Scope | None
    children: list[Scope] = field(default_factory=list)
    names: list[tuple[Node, str, str]] = field(default_factory=list)
    table: symtable.SymbolTable | None = None
    is_inlined: bool = False
    reflects: bool = False

    def walk(self) -> Iterator[Scope]:
        """Yield this scope and all scopes inside it."""
        scopes = [self]
        while scopes:
            scope = scopes.pop()
            yield scope
            scopes += scope.children

    def reflect(self) -> None:
        """Mark this scope and all enclosing scopes as reflecting."""
        at: Scope | None = self
        while at is not None and not at.reflects:
            at.reflects = True
            at = at.parent

    def targets(self) -> set[str]:
        """Return the names that a comprehension's `for` clauses assign, such as `x` in `[x for x in y]`."""
        # `:=` in a comprehension assigns in the enclosing scope.
        return {name for node, name, role in self.names if role == "bind" and not _is_walrus(node)}

    def symbol(self, name: str) -> symtable.Symbol | None:
        """Return the entry of a name in CPython's symbol table.

        None means that the table or the entry is unknown, or that the entry may stand for two variables.
        """
        if self.table is None or name in self._ambiguous_names:
            return None
        try:
            return self.table.lookup(name)
        except KeyError:
            return None

    @cached_property
    def _ambiguous_names(self) -> set[str]:
        """The names that may stand for two variables at once in CPython's symbol table of this scope."""
        # If a function contains `[x for x in y]` and also reads a global `x`, its table has one entry `x` for
        # both. If the function itself assigns `x`, the entry describes the function's variable.
        inlined = self._inlined()
        own = {name for _, name, role in self.names if role in BINDING}
        own |= {name for scope in inlined for node, name, _ in scope.names if _is_walrus(node)}
        return set[str]().union(*(scope.targets() for scope in inlined)) - own

    def _inlined(self) -> list[Scope]:
        """Return the inlined comprehensions in this scope, including those inside other ones."""
        inlined = [scope for scope in self.children if scope.is_inlined]
        return inlined + [inner for scope in inlined for inner in scope._inlined()]


def _is_walrus(node: Node) -> bool:
    """Return whether an identifier is assigned by `:=`."""
    parent = node.parent
    if parent is None or parent.type != "named_expression":
        return False
    return parent.child_by_field_name("name") == node


def scopes_of(unit: CodeUnit) -> Scope:
    """Build the tree of scopes with their identifiers; return its root, the module."""
    found = captures(unit, _SCOPES)
    nodes = found.get("scope", [])
    names = identifier_roles(unit)
    # Each event is the begin of some code: (start, -end, kind, index of the scope or identifier). At the same
    # position, code of the enclosing scope comes first.
    outside, inside, scope, comprehension, identifier = range(5)
    events = [(node.start_byte, -node.end_byte, outside, 0) for node in found.get("outside", [])]
    events += [(node.start_byte, -node.end_byte, identifier, at) for at, (node, _) in enumerate(names)]
    for at, node in enumerate(nodes):
        events.append((node.start_byte, -node.end_byte, scope, at))
        if node.type.endswith(("comprehension", "generator_expression")):
            events.append((node.start_byte, -node.end_byte, comprehension, at))
            clause = next(child for child in node.children if child.type == "for_in_clause")
            # Python evaluates the first iterable of a comprehension in the enclosing scope, as it does
            # default values and annotations.
            first = clause.children_by_field_name("right")[0]
            events.append((first.start_byte, -first.end_byte, outside, 0))
        else:
            parts = [node.child_by_field_name(name) for name in ("parameters", "body")]
            events += [(part.start_byte, -part.end_byte, inside, at) for part in parts if part]
    module = Scope(unit.root, None)
    scopes: dict[int, Scope] = {}
    stack = [(len(unit.text) + 1, module)]
    for start, negative_end, what, at in sorted(events):
        while stack[-1][0] <= start:
            stack.pop()
        here = stack[-1][1]
        if what == identifier:
            node, role = names[at]
            here.names.append((node, unicodedata.normalize("NFKC", unit.text_of(node).decode()), role))
        elif what == scope:
            scopes[at] = Scope(nodes[at], here)
            here.children.append(scopes[at])
        else:
            stack.append((-negative_end, here.parent or here if what == outside else scopes[at]))
    return module
