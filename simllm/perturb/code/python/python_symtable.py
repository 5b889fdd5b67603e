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
        children = list(scope.children)
        for inner_scope in children:
            key = _table_name(inner_scope), inner_scope.node.start_point.row + 1
            if inner_scope.node.type in IMMEDIATE and not tables[key]:
                inner_scope.is_inlined = True
                # The table of the enclosing scope has their tables, too.
                children += inner_scope.children
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
