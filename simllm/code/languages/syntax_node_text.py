"""The source text of a node in a tree-sitter syntax tree, or of one of its children."""

from __future__ import annotations

from tree_sitter import Node


def field(node: Node, name: str) -> str:
    """Return the source text of the child in a tree-sitter field, such as "body"; "" if there is none."""
    child = node.child_by_field_name(name)
    return text(child) if child else ""


def text(node: Node) -> str:
    """Return the source text of a syntax node."""
    return (node.text or b"").decode(errors="replace")
