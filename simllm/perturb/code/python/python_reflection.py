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
    """Mark the scopes whose variables may be accessed through frames or code objects.

    Examples of such access are `sys._getframe` and `f.__code__`. A scope is marked by setting its attribute
    `reflects` to True. The variables of a marked scope are not renamed.

    Args:
        module: The outermost scope.
    """
    scopes = list(module.walk())
    names = {name for scope in scopes for _, name, _ in scope.names}
    for scope in scopes:
        if names & _ALL or any(name in _OWN for _, name, _ in scope.names):
            scope.reflect()


def mark_reader(node: Node, name: str, scope: Scope, module: Scope) -> None:
    """Mark the scopes whose variables a builtin such as `eval` may access by name.

    A scope is marked by setting its attribute `reflects` to True. The variables of a marked scope are not
    renamed. These scopes are marked:

    - `globals`: only the module.
    - Any other builtin that is not called, as in `f = eval`: all scopes.
    - `vars(x)` or `dir(x)`: none, because only the attributes of x are read.
    - Any other call, such as `eval(text)` or `vars()`: the scope with the call, and all scopes around it.

    Args:
        node: The syntax node of the builtin's name, at a place where the code uses the builtin.
        name: The name of the builtin, such as "eval".
        scope: The scope that contains `node`.
        module: The outermost scope.
    """
    if name == "globals":
        module.reflects = True
        return
    call = node.parent
    if call is None or call.type != "call" or field(call, "function") != node:
        for other in module.walk():  # the builtin is passed on, and may be called anywhere
            other.reflects = True
        return
    passed = [child for child in field(call, "arguments").named_children if child.type != "comment"]
    if name not in ("vars", "dir") or not passed or passed[0].type == "list_splat":
        scope.reflect()
