"""The scopes and variables of Python code.

Scopes are found in the syntax tree, and matched with CPython's own symbol tables (module `symtable`), which
tell to which scope a name belongs.
"""

from __future__ import annotations

import re
import symtable
import unicodedata
import warnings
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from tree_sitter import Node

from simllm.perturb.code.python.parsing import captures, children, required
from simllm.perturb.code.python.roles import BINDING, identifier_roles
from simllm.perturb.code.units import CodeUnit

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


def _scopes_of(unit: CodeUnit) -> Scope:
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


_TABLE_NAMES = {  # as `symtable` calls scopes without a name
    "lambda": "lambda",
    "list_comprehension": "listcomp",
    "set_comprehension": "setcomp",
    "dictionary_comprehension": "dictcomp",
    "generator_expression": "genexpr",
}


def _match_tables(module: Scope, table: symtable.SymbolTable) -> None:
    """Store in each scope inside `module` its symbol table, if it can be determined.

    A table belongs to a scope if both have the same name and begin on the same line. A scope without a name,
    such as a lambda, is matched by its kind.
    """
    pairs = [(module, table)]
    while pairs:
        scope, table = pairs.pop()
        scope.table = table
        tables: dict[tuple[str, int], list[symtable.SymbolTable]] = defaultdict(list)
        for inner_table in _inner_tables(table):
            tables[inner_table.get_name(), inner_table.get_lineno()].append(inner_table)
        scopes: dict[tuple[str, int], list[Scope]] = defaultdict(list)
        inner_scopes = list(scope.children)
        for inner_scope in inner_scopes:
            key = _table_name(inner_scope), inner_scope.node.start_point.row + 1
            if inner_scope.node.type in IMMEDIATE and not tables[key]:
                inner_scope.is_inlined = True
                # The table of the enclosing scope has their tables, too.
                inner_scopes += inner_scope.children
            else:
                scopes[key].append(inner_scope)
        for key, same_line in scopes.items():
            pairs += _pair(same_line, tables[key])


def _pair(
    scopes: list[Scope], tables: list[symtable.SymbolTable]
) -> list[tuple[Scope, symtable.SymbolTable]]:
    """Pair scopes with tables; all of them begin on one line and have the same name or kind.

    Scopes whose table cannot be determined are left out.
    """
    # This compiler and tree-sitter disagree about the scopes of the line.
    if len(scopes) != len(tables):
        return []
    # If all tables are equal, any of them fits any scope, as for two equal lambdas on one line.
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
    """Return the symbol tables of the functions and classes directly inside a table."""
    tables = []
    for inner in table.get_children():
        is_scope = inner.get_type() in ("function", "class")
        # Type parameters, for example, have a scope of their own around the function.
        tables += [inner] if is_scope else _inner_tables(inner)
    return tables


def _table_name(scope: Scope) -> str:
    """Return the name that `symtable` gives to the table of a scope, such as "lambda" for a lambda."""
    name = scope.node.child_by_field_name("name")
    return (name.text or b"").decode() if name else _TABLE_NAMES[scope.node.type]


def _signature(table: symtable.SymbolTable) -> object:
    """Return a hashable summary of a symbol table and the tables inside, to compare tables."""
    symbols = frozenset((s.get_name(), s.is_local(), s.is_free(), s.is_global()) for s in table.get_symbols())
    return symbols, tuple(_signature(inner) for inner in table.get_children())


def _all_names(table: symtable.SymbolTable) -> frozenset[str]:
    """Return the names of the source in a symbol table and in the tables inside it."""
    # The compiler generates names that begin with a full stop, such as `.0` in comprehensions.
    names = {name for name in table.get_identifiers() if not name.startswith(".")}
    return frozenset(names.union(*map(_all_names, table.get_children())))


# Builtins that access variables by name in the scope from which they are called.
_READERS = frozenset("eval exec locals vars dir globals".split())
_BINDERS = frozenset("globals exec __builtins__ builtins".split())  # may bind names of the module
# Names by which code accesses the variables of its own scope (_OWN), or of all scopes (_ALL).
_OWN = frozenset("_getframe currentframe f_globals __code__".split())
_ALL = frozenset("f_locals getargvalues getclosurevars co_varnames co_cellvars co_freevars".split())
_ALL |= {"builtins", "__builtins__"}


def _mark_frames(module: Scope) -> None:
    """Mark the scopes that reflect through frames or code objects: `sys._getframe`, `f.__code__`."""
    scopes = list(module.walk())
    names = {name for scope in scopes for _, name, _ in scope.names}
    for scope in scopes:
        # These names may be attributes of anything, so they count wherever they occur.
        if names & _ALL or any(name in _OWN for _, name, _ in scope.names):
            scope.reflect()


def _mark_reader(node: Node, name: str, scope: Scope, module: Scope) -> None:
    """Mark the scopes whose variables a builtin such as `eval`, named by `node` in `scope`, may access."""
    # It reads only the variables of the module.
    if name == "globals":
        module.reflects = True
        return
    call = node.parent
    if call is None or call.type != "call" or required(call, "function") != node:
        # The builtin is passed on, as in `f = eval`, and may be called anywhere.
        for other in module.walk():
            other.reflects = True
        return
    passed = children(required(call, "arguments"))
    # `vars(x)` and `dir(x)` read the attributes of `x`, not the variables of a scope.
    if name not in ("vars", "dir") or not passed or passed[0].type == "list_splat":
        scope.reflect()


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
        self.module = _scopes_of(unit)
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
        _match_tables(self.module, table)
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
        _mark_frames(self.module)
        owned: dict[tuple[Scope, str], Variable] = {}
        seen: dict[tuple[Scope, str], Variable | None] = {}
        for scope in self.module.walk():
            for node, name, role in scope.names:
                self._binds_unseen |= name in _BINDERS
                if role == "attribute":
                    self.attributes.append(node)
                    continue
                if (scope, name) not in seen:
                    owner = _owner(scope, name, self.module)
                    known = owned.setdefault((owner, name), Variable(name, owner)) if owner else None
                    seen[scope, name] = known
                variable = seen[scope, name]
                if name in _READERS and (variable is None or variable.scope is self.module):
                    _mark_reader(node, name, scope, self.module)
                if variable is None:
                    self.unresolved.add(name)
                else:
                    variable.uses.append(Use(node, role, scope))
                    self._at[node.start_byte] = variable
        self.variables = list(owned.values())
        for variable in self.variables:
            variable.uses.sort(key=lambda use: use.node.start_byte)


def _is_private(name: str) -> bool:
    """Return whether a name is like `__x`, which Python changes in class `A` to `_A__x`, or like `_A__x`."""
    return name.startswith("_") and "__" in name and not name.endswith("__")


def _owner(scope: Scope, name: str, module: Scope) -> Scope | None:
    """Return the scope to which a name in a scope belongs; None if this cannot be determined."""
    if _is_private(name):
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


# The only decorators that certainly read no names.
_TRANSPARENT = (b"staticmethod", b"classmethod", b"property")


def is_opaque(unit: CodeUnit, scopes: Scopes, function: Node) -> bool:
    """Return whether a decorator may read the name of a function or of a parameter.

    An example is `@pytest.mark.parametrize("x", values)`.
    """
    parent = function.parent
    if parent is None or parent.type != "decorated_definition":
        return False
    names = [child.named_children[0] for child in parent.children if child.type == "decorator"]
    return not all(unit.text_of(node) in _TRANSPARENT and scopes.is_builtin(node) for node in names)
