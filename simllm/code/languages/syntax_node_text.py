"""The source text of a syntax node (a node of a tree-sitter tree), or of its child in a named field."""

from __future__ import annotations

from tree_sitter import Node


def field(node: Node, name: str) -> str:
    """Return the source text of one child of a syntax node: the child in the field `name`, such as "body".

    The text is "" if the node has no child in this field.
    """
    child = node.child_by_field_name(name)
    return text(child) if child else ""


def text(node: Node) -> str:
    """Return the source text of a syntax node."""
    return (node.text or b"").decode(errors="replace")
