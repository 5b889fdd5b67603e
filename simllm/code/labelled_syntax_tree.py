"""Syntax trees of code with a label for each node, as input of the tree edit distance."""

from __future__ import annotations

import re

from tree_sitter import Node

from simllm.code.languages.language_registry import find_language
from simllm.code.ordered_tree import OrderedTree

_OPERATOR = re.compile(r"[-+*/%<>=!&|^~?@]+|(?:and|or|not|in|is)(?: (?:not|in))?")


def syntax_tree(code: str, language: str) -> OrderedTree:
    """Parse code into its syntax tree without comments and punctuation; syntax errors are allowed.

    The nodes are the operators and the named nodes of the tree-sitter tree. The label of an inner node is its
    type; that of a leaf is its type and its text. White space between tokens is removed from the text: an
    empty argument list `( )` becomes `()`. TimeoutError if parsing takes too long.
    """
    root = find_language(language).parse(code.encode(errors="replace"))
    labels: list[str] = []
    sizes: list[int] = []
    # A stack instead of recursion, because trees of generated code may be deeper than Python's limit.
    stack = [(root, False, 0)]  # a node, whether its children are done, and the number of labels before them
    while stack:
        node, done, before = stack.pop()
        if not done:
            stack.append((node, True, len(labels)))
            if node.is_named:
                stack += [(child, False, 0) for child in reversed(node.children) if _is_kept(child)]
        else:
            size = len(labels) - before + 1
            labels.append(node.type if size > 1 else f"{node.type} {_token_text(node)}".rstrip())
            sizes.append(size)
    return OrderedTree(labels, sizes)


def _is_kept(node: Node) -> bool:
    """Return whether a node is an operator or a named node, but no comment."""
    if node.is_named:
        return "comment" not in node.type
    return bool(_OPERATOR.fullmatch(node.type))


def _token_text(node: Node) -> str:
    """Return the text of all tokens in a node, without the white space and comments between the tokens."""
    if not node.child_count:
        return (node.text or b"").decode(errors="replace")
    return "".join(_token_text(child) for child in node.children if "comment" not in child.type)
