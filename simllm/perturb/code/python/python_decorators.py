"""Check whether a decorator may read names of a Python function, such as those of its parameters."""

from __future__ import annotations

from tree_sitter import Node

from simllm.perturb.code.code_unit import CodeUnit
from simllm.perturb.code.python.python_name_resolution import Scopes

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
