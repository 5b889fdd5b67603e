"""The supertypes of a class: the names of the types that the class extends or implements."""

from __future__ import annotations

import re

from tree_sitter import Node

from simllm.code.languages.syntax_node_text import text

_LONGEST_HERITAGE = 2_000  # characters; the rest is cut
_HERITAGE = {
    "argument_list",
    "base_clause",
    "class_heritage",
    "class_interface_clause",
    "extends_interfaces",
    "extends_type_clause",
    "super_interfaces",
    "superclass",
}


def supertypes(node: Node) -> str:
    """Return the names of the types that a class extends or implements, separated by spaces.

    Package names and type arguments are removed.
    """
    heritage = " ".join(text(child) for child in node.children if child.type in _HERITAGE)
    heritage = heritage[:_LONGEST_HERITAGE]
    for noise in (r"<[^<>]*>", r"<[^<>]*>", r"\[[^\[\]]*\]", r"\w+\s*=\s*[\w.]+"):
        heritage = re.sub(noise, " ", heritage)
    names = [re.split(r"\.|::|\\", name)[-1] for name in re.findall(r"[\w.:\\]+", heritage)]
    # A word without a capital first letter may be a keyword such as `extends`.
    return " ".join(name for name in names if re.match("_*[A-Z]", name))
