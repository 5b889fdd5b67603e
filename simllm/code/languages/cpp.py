"""Rules that find documented C++ functions: a Doxygen comment documents the function after it.

The function may be defined or only declared.
"""

from __future__ import annotations

from tree_sitter import Node

from simllm.code.languages.comment_marks import strip_block_marks
from simllm.code.languages.find_doc_comments import block_comments
from simllm.code.languages.language import Language
from simllm.code.languages.syntax_node_text import text
from simllm.code.languages.syntax_tree_cursor import NodePath, path_to_type

_FUNCTIONS = frozenset({"function_definition", "declaration", "field_declaration", "template_declaration"})


def _function(path: NodePath) -> NodePath | None:
    """Find the C++ function that begins with a given token.

    Args:
        path: The syntax nodes from the root to the token, such as the first word of a function.

    Returns:
        The syntax nodes from the root to the function; None if no function begins with the token.
    """
    found = path_to_type(path, _FUNCTIONS)
    return found if found and _declarator(found[-1]) else None


def _declarator(node: Node) -> Node | None:
    """Return the node `function_declarator` inside the syntax node of a C++ declaration.

    The declaration may be a function definition, a function declaration or a template. None is returned if
    it declares no function.
    """
    inner: Node | None = node
    while inner is not None and inner.type != "function_declarator":
        if inner.type == "template_declaration":
            inner = inner.named_children[-1]
        elif inner.type == "reference_declarator":  # has no field
            inner = inner.named_children[0] if inner.named_children else None
        else:
            inner = inner.child_by_field_name("declarator")
    return inner


def _name(node: Node) -> str:
    """Return the name of a C++ function, such as "Stack::push", from its syntax node.

    Destructors and operators count as functions.
    """
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
