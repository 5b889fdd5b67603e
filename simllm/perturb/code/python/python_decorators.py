"""Check whether a decorator may read names of a Python function, so that renaming them is not safe.

For example, the decorator `@pytest.mark.parametrize("x", values)` reads the names of parameters.
"""

from __future__ import annotations

from tree_sitter import Node

from simllm.perturb.code.code_unit import CodeUnit
from simllm.perturb.code.python.python_name_resolution import Scopes

_TRANSPARENT = (b"staticmethod", b"classmethod", b"property")  # decorators that read no names


def is_opaque(unit: CodeUnit, scopes: Scopes, function: Node) -> bool:
    """Return whether a decorator may read names of a function, so that renaming them is not safe.

    The names are the name of the function and the names of its parameters. Only the builtin decorators
    `staticmethod`, `classmethod` and `property` certainly read no names.

    Args:
        unit: The parsed code.
        scopes: The scopes and variables of the code.
        function: The syntax node of the function.
    """
    parent = function.parent
    if parent is None or parent.type != "decorated_definition":
        return False
    names = [child.named_children[0] for child in parent.children if child.type == "decorator"]
    return not all(unit.text_of(node) in _TRANSPARENT and scopes.is_builtin(node) for node in names)
