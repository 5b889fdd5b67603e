"""Detection of Python code that accesses variables by name at run time, such as `locals()`."""

from __future__ import annotations

from tree_sitter import Node

from simllm.perturb.code.python.python_parsing import field
from simllm.perturb.code.python.python_scope_tree import Scope

# Builtins that access variables by name in the scope from which they are called.
READERS = frozenset("eval exec locals vars dir globals".split())
BINDERS = frozenset("globals exec __builtins__ builtins".split())  # may bind names of the module
# Names by which code accesses the variables of its own scope (_OWN), or of all scopes (_ALL).
_OWN = frozenset("_getframe currentframe f_globals __code__".split())
_ALL = frozenset("f_locals getargvalues getclosurevars co_varnames co_cellvars co_freevars".split())
_ALL |= {"builtins", "__builtins__"}


def mark_frames(module: Scope) -> None:
    """Mark the scopes that reflect through frames or code objects: `sys._getframe`, `f.__code__`."""
    scopes = list(module.walk())
    names = {name for scope in scopes for _, name, _ in scope.names}
    for scope in scopes:
        # These names may be attributes of anything, so they count wherever they occur.
        if names & _ALL or any(name in _OWN for _, name, _ in scope.names):
            scope.reflect()


def mark_reader(node: Node, name: str, scope: Scope, module: Scope) -> None:
    """Mark the scopes whose variables a builtin such as `eval`, named by `node` in `scope`, may access."""
    # It reads only the variables of the module.
    if name == "globals":
        module.reflects = True
        return
    call = node.parent
    if call is None or call.type != "call" or field(call, "function") != node:
        # The builtin is passed on, as in `f = eval`, and may be called anywhere.
        for other in module.walk():
            other.reflects = True
        return
    passed = [child for child in field(call, "arguments").named_children if child.type != "comment"]
    # `vars(x)` and `dir(x)` read the attributes of `x`, not the variables of a scope.
    if name not in ("vars", "dir") or not passed or passed[0].type == "list_splat":
        scope.reflect()
