"""Rules that find documented C++ functions: a Doxygen comment documents the function after it.

The function may be defined or only declared.
"""

from __future__ import annotations

from tree_sitter import Node

from simllm.code.languages.cursor import NodePath, path_to_type
from simllm.code.languages.language import Language, block_comments, strip_block_marks, text

_FUNCTIONS = frozenset({"function_definition", "declaration", "field_declaration", "template_declaration"})


def _function(path: NodePath) -> NodePath | None:
    found = path_to_type(path, _FUNCTIONS)
    return found if found and _declarator(found[-1]) else None


def _declarator(node: Node) -> Node | None:
    """Return the node `function_declarator` in a declaration or template; None if it declares no function."""
    inner: Node | None = node
    # The return type wraps the declarator: a pointer to a function's result is a `pointer_declarator` around
    # it.
    while inner is not None and inner.type != "function_declarator":
        if inner.type == "template_declaration":
            inner = inner.named_children[-1]
        elif inner.type == "reference_declarator":  # has no field
            inner = inner.named_children[0] if inner.named_children else None
        else:
            inner = inner.child_by_field_name("declarator")
    return inner


def _name(node: Node) -> str:
    """Return the name of a C++ function, destructor or operator, such as "Stack::push"."""
    declarator = _declarator(node)
    name = declarator.child_by_field_name("declarator") if declarator else None
    return text(name) if name else ""


LANGUAGE = Language(
    grammars=(("tree_sitter_cpp", "language"),),
    places=block_comments,
    function=_function,
    strip_marks=strip_block_marks,
    name=_name,
    classes=frozenset({"class_specifier", "namespace_definition", "struct_specifier", "union_specifier"}),
)
