"""Rewrites of Python code that keep its behaviour.

The types of syntax nodes and the roles of children are those of the grammar tree-sitter-python. Terms:

- scope: the module, a function, a class, a lambda or a comprehension. A scope reflects if code in it, or in a
  scope inside, may access variables by name at run time, as `locals()` does; its variables are not renamed.
- variable: a name in a scope. Functions, classes, imports and builtins are variables, too.
- role of an identifier: whether it is read, bound, declared and so on (see `identifier_roles`).
- known: a variable is known if all its uses are certainly found.
- kind of a value: "integer" if the value is certainly an integer; "plain" if it is certainly immutable; None
  if it may be anything.
- chain: an `if` with all its `elif` and `else` clauses.
"""
