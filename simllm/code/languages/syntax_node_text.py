"""Functions that return the source text of a node in a tree-sitter syntax tree, or of one of its children."""

from __future__ import annotations

from tree_sitter import Node


def field(node: Node, name: str) -> str:
    """Return the source text of one child of a syntax node, such as the "body" of a function.

    Args:
        node: The node.
        name: The name of the tree-sitter field that holds the child, such as "body".

    Returns:
        The text; "" if the node has no child in this field.
    """
    child = node.child_by_field_name(name)
    return text(child) if child else ""


def text(node: Node) -> str:
    """Return the source text of a syntax node."""
    return (node.text or b"").decode(errors="replace")
