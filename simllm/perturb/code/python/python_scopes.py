"""The scopes and variables of Python code: identifiers of the syntax tree, resolved by `symtable`."""

from __future__ import annotations

import symtable
import unicodedata
import warnings
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from tree_sitter import Node

from simllm.perturb.code.code_unit import CodeUnit
from simllm.perturb.code.python.python_roles import identifier_roles
from simllm.perturb.code.python.python_unit import captures

_SCOPES = """
[(function_definition) (class_definition) (lambda) (list_comprehension) (set_comprehension)
 (dictionary_comprehension) (generator_expression)] @scope
(default_parameter value: (_) @outside)
(typed_default_parameter value: (_) @outside)
(typed_default_parameter type: (_) @outside)
(typed_parameter type: (_) @outside)
"""
_TABLE_NAMES = {  # as `symtable` calls scopes without a name
    "lambda": "lambda",
    "list_comprehension": "listcomp",
    "set_comprehension": "setcomp",
    "dictionary_comprehension": "dictcomp",
    "generator_expression": "genexpr",
}
# Code that reads names at run time.
_REFLECTION = frozenset(
    "eval exec locals vars dir globals _getframe currentframe f_locals f_globals __code__ co_varnames".split()
)


class Use(NamedTuple):
    """An occurrence of a variable.

    Attributes:
        node: The identifier.
        role: The role of the identifier, as in `identifier_roles`.
        scope: The scope in which the identifier stands.
    """

    node: Node
    role: str
    scope: Scope


@dataclass(eq=False)
class Scope:
    """A scope of Python code.

    Attributes:
        node: The syntax node that makes the scope: the module, a function, a class, a comprehension.
        parent: The scope around it.
        children: The scopes directly inside.
        names: The identifiers in the scope itself, with their roles.
        table: The scope's symbols as CPython sees them; None if they are not surely found.
        reflects: Whether code in the scope, or further inside, may read names at run time.
    """

    node: Node
    parent: Scope | None
    children: list[Scope] = field(default_factory=list)
    names: list[tuple[Node, str, str]] = field(default_factory=list)
    table: symtable.SymbolTable | None = None
    reflects: bool = False

    def walk(self) -> Iterator[Scope]:
        """Yield the scope and all scopes inside."""
        scopes = [self]
        while scopes:
            scope = scopes.pop()
            yield scope
            scopes += scope.children


@dataclass(eq=False)
class Variable:
    """A variable.

    Attributes:
        name: The name.
        scope: The scope to which the variable belongs.
        uses: The occurrences in the order of the source, also those in inner scopes.
    """

    name: str
    scope: Scope
    uses: list[Use] = field(default_factory=list)


class Scopes:
    """The scopes and variables of a unit.

    Attributes:
        module: The outermost scope.
        variables: All variables.
        unresolved: Names of which some occurrence belongs to no known variable.
        attributes: The identifiers that are no variables.
        has_star_import: Whether the unit imports all names of some module.
    """

    def __init__(self, unit: CodeUnit) -> None:
        self.module = _scopes_of(unit)
        self.variables: list[Variable] = []
        self.unresolved: set[str] = set()
        self.attributes: list[Node] = []
        self.has_star_import = "star" in captures(unit, "(wildcard_import) @star")
        self._at: dict[int, Variable] = {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            table = symtable.symtable(unit.text, "<code>", "exec")  # type: ignore[arg-type]
        _match_tables(self.module, table)
        self._resolve()

    def at(self, node: Node) -> Variable | None:
        """Return the variable that an identifier names."""
        return self._at.get(node.start_byte)

    def is_known(self, variable: Variable | None) -> bool:
        """Return whether all uses of a variable are surely found."""
        return variable is not None and variable.name not in self.unresolved

    def is_builtin(self, node: Node) -> bool:
        """Return whether an identifier surely names a builtin: no code of the unit binds the name."""
        variable = self.at(node)
        return (
            variable is not None
            and self.is_known(variable)
            and variable.scope is self.module
            and not self.has_star_import
            and all(use.role == "read" for use in variable.uses)
        )

    def _resolve(self) -> None:
        """Find the variable of each identifier."""
        owned: dict[tuple[Scope, str], Variable] = {}
        seen: dict[tuple[Scope, str], Variable | None] = {}
        for scope in self.module.walk():
            for node, name, role in scope.names:
                if name in _REFLECTION:
                    _mark_reflection(scope)
                if role == "attribute":
                    self.attributes.append(node)
                    continue
                if (scope, name) not in seen:
                    owner = _owner(scope, name, self.module)
                    known = owned.setdefault((owner, name), Variable(name, owner)) if owner else None
                    seen[scope, name] = known
                variable = seen[scope, name]
                if variable is None:
                    self.unresolved.add(name)
                else:
                    variable.uses.append(Use(node, role, scope))
                    self._at[node.start_byte] = variable
        self.variables = list(owned.values())
        for variable in self.variables:
            variable.uses.sort(key=lambda use: use.node.start_byte)


def _scopes_of(unit: CodeUnit) -> Scope:
    """Build the tree of scopes, each with its identifiers, and return the scope of the module."""
    found = captures(unit, _SCOPES)
    nodes = found.get("scope", [])
    names = identifier_roles(unit)
    # What begins where: (start, -end, what, index of the scope or identifier). At the same place, the code of
    # the scope around comes first.
    outside, inside, scope, comprehension, identifier = range(5)
    events = [(node.start_byte, -node.end_byte, outside, 0) for node in found.get("outside", [])]
    events += [(node.start_byte, -node.end_byte, identifier, at) for at, (node, _) in enumerate(names)]
    for at, node in enumerate(nodes):
        events.append((node.start_byte, -node.end_byte, scope, at))
        if node.type.endswith(("comprehension", "generator_expression")):
            events.append((node.start_byte, -node.end_byte, comprehension, at))
            clause = next(child for child in node.children if child.type == "for_in_clause")
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


def _match_tables(module: Scope, table: symtable.SymbolTable) -> None:
    """Find the table of symbols of each scope: by its kind or name, its line and the names in it."""
    pairs = [(module, table)]
    while pairs:
        scope, table = pairs.pop()
        scope.table = table
        tables: dict[tuple[str, int], list[symtable.SymbolTable]] = defaultdict(list)
        for inner_table in _inner_tables(table):
            tables[inner_table.get_name(), inner_table.get_lineno()].append(inner_table)
        scopes: dict[tuple[str, int], list[Scope]] = defaultdict(list)
        for inner_scope in scope.children:
            scopes[_table_name(inner_scope), inner_scope.node.start_point.row + 1].append(inner_scope)
        for key, same_line in scopes.items():
            pairs += _pair(same_line, tables[key])


def _pair(
    scopes: list[Scope], tables: list[symtable.SymbolTable]
) -> list[tuple[Scope, symtable.SymbolTable]]:
    """Pair scopes of one kind in one line with their tables; leave out those that are not surely found."""
    if len(scopes) != len(tables):
        return []
    if len(scopes) == 1 or len({_signature(table) for table in tables}) == 1:
        return list(zip(scopes, tables, strict=True))
    pairs: list[tuple[Scope, symtable.SymbolTable]] = []
    for scope in scopes:
        names = frozenset(
            name for inner in scope.walk() for _, name, role in inner.names if role != "attribute"
        )
        same = {_signature(table): table for table in tables if _all_names(table) == names}
        if len(same) == 1:
            pairs.append((scope, next(iter(same.values()))))
    return pairs


def _inner_tables(table: symtable.SymbolTable) -> list[symtable.SymbolTable]:
    """Return the tables of the functions and classes directly inside a table."""
    tables = []
    for inner in table.get_children():
        is_scope = inner.get_type() in ("function", "class")
        tables += [inner] if is_scope else _inner_tables(inner)  # such as the scope of type parameters
    return tables


def _table_name(scope: Scope) -> str:
    """Return the name of a scope in `symtable`."""
    name = scope.node.child_by_field_name("name")
    return (name.text or b"").decode() if name else _TABLE_NAMES[scope.node.type]


def _signature(table: symtable.SymbolTable) -> object:
    """Return a value that is equal for tables in which the same names mean the same."""
    symbols = frozenset((s.get_name(), s.is_local(), s.is_free(), s.is_global()) for s in table.get_symbols())
    return symbols, tuple(_signature(inner) for inner in table.get_children())


def _all_names(table: symtable.SymbolTable) -> frozenset[str]:
    """Return the names in a table and the tables inside, without those that the compiler makes."""
    names = {name for name in table.get_identifiers() if not name.startswith(".")}
    return frozenset(names.union(*map(_all_names, table.get_children())))


def _owner(scope: Scope, name: str, module: Scope) -> Scope | None:
    """Return the scope to which a name belongs; None if it is not surely known."""
    is_private = name.startswith("__") and not name.endswith("__")  # other names in classes
    if scope is module:
        return None if is_private else module
    if is_private or (symbol := _symbol(scope, name)) is None:
        return None
    if symbol.is_global():
        return module
    if symbol.is_local():
        return scope
    outer = scope.parent
    while outer is not None and outer is not module:
        if outer.node.type != "class_definition":
            symbol = _symbol(outer, name)
            if symbol is None or symbol.is_local():
                return outer if symbol is not None else None
        outer = outer.parent
    return None


def _symbol(scope: Scope, name: str) -> symtable.Symbol | None:
    """Return a name's entry in the table of a scope, or None if there is none."""
    try:
        return scope.table.lookup(name) if scope.table else None
    except KeyError:
        return None


def _mark_reflection(scope: Scope) -> None:
    """Note that code in a scope may read names at run time."""
    at: Scope | None = scope
    while at is not None and not at.reflects:
        at.reflects = True
        at = at.parent
