"""Matching of CPython's symbol tables (module `symtable`) with the scopes of the syntax tree."""

from __future__ import annotations

import symtable
from collections import defaultdict

from simllm.perturb.code.python.python_scope_tree import IMMEDIATE, Scope

_TABLE_NAMES = {  # as `symtable` calls scopes without a name
    "lambda": "lambda",
    "list_comprehension": "listcomp",
    "set_comprehension": "setcomp",
    "dictionary_comprehension": "dictcomp",
    "generator_expression": "genexpr",
}


def match_tables(module: Scope, table: symtable.SymbolTable) -> None:
    """Find the symbol table of each scope, and store it in the attribute `table` of the scope.

    A scope is a module, function, class, lambda or comprehension. A table belongs to a scope if both have the
    same name and begin on the same line. A scope without a name, such as a lambda, is matched by its kind
    instead.

    Several scopes with the same name or kind may begin on one line. If their tables are all equal, each scope
    gets any one of them. Otherwise, the identifiers inside a scope decide which table belongs to it. If the
    table of a scope cannot be determined, the attribute `table` stays None.

    Args:
        module: The outermost scope. The attribute is set for this scope and all scopes inside.
        table: The symbol table of the whole code.
    """
    pairs = [(module, table)]
    while pairs:
        scope, table = pairs.pop()
        scope.table = table
        tables: dict[tuple[str, int], list[symtable.SymbolTable]] = defaultdict(list)
        for inner_table in _inner_tables(table):
            tables[inner_table.get_name(), inner_table.get_lineno()].append(inner_table)
        scopes: dict[tuple[str, int], list[Scope]] = defaultdict(list)
        children = list(scope.children)
        for inner_scope in children:
            key = _table_name(inner_scope), inner_scope.node.start_point.row + 1
            if inner_scope.node.type in IMMEDIATE and not tables[key]:
                inner_scope.is_inlined = True
                children += inner_scope.children  # the enclosing scope's table has their tables, too
            else:
                scopes[key].append(inner_scope)
        for key, same_line in scopes.items():
            pairs += _pair(same_line, tables[key])


def _pair(
    scopes: list[Scope], tables: list[symtable.SymbolTable]
) -> list[tuple[Scope, symtable.SymbolTable]]:
    """Find the symbol tables of scopes that begin on one line and have the same name or kind.

    Two lambdas on one line are an example. If all tables are equal, any table fits any scope. Otherwise, a
    scope gets the table that has the same identifiers as the scope.

    Args:
        scopes: Scopes that begin on the same line. Either all have the same name, or all are of the same kind
            and have no name, such as two lambdas.
        tables: The symbol tables that have this name (or kind) and begin on this line.

    Returns:
        Pairs of a scope and its table. Scopes whose table cannot be determined are left out.
    """
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
    """Return the symbol tables of the functions and classes directly inside a table."""
    tables = []
    for inner in table.get_children():
        is_scope = inner.get_type() in ("function", "class")
        tables += [inner] if is_scope else _inner_tables(inner)  # such as the scope of type parameters
    return tables


def _table_name(scope: Scope) -> str:
    """Return the name that `symtable` gives to the table of a scope, such as "lambda" for a lambda."""
    name = scope.node.child_by_field_name("name")
    return (name.text or b"").decode() if name else _TABLE_NAMES[scope.node.type]


def _signature(table: symtable.SymbolTable) -> object:
    """Return a hashable summary of the content of a symbol table, to check whether two tables are equal.

    The summary includes the tables inside the table.
    """
    symbols = frozenset((s.get_name(), s.is_local(), s.is_free(), s.is_global()) for s in table.get_symbols())
    return symbols, tuple(_signature(inner) for inner in table.get_children())


def _all_names(table: symtable.SymbolTable) -> frozenset[str]:
    """Return all names in a symbol table and in the tables inside it.

    Names that the compiler generates are left out; they begin with a full stop.
    """
    names = {name for name in table.get_identifiers() if not name.startswith(".")}
    return frozenset(names.union(*map(_all_names, table.get_children())))
