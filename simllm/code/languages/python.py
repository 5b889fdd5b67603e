"""Python: a docstring is the first statement of a function."""

from __future__ import annotations

import re
from collections.abc import Iterator
from inspect import cleandoc

from tree_sitter import Node

from simllm.code.languages.base import Language, Place, field

_DOCSTRING = re.compile(
    rb""":[ \t]*(?:#[^\n]*)?\n(?:[ \t]*(?:#[^\n]*)?\n)*+[ \t]*"""
    rb"""([rRuU]?(?:(\"\"\"|''')(?s:.*?)(?:(?<!\\)\2|\Z)|"[^"\n]*"|'[^'\n]*'))"""
)


def _places(code: bytes) -> Iterator[Place]:
    for match in _DOCSTRING.finditer(code):
        yield Place(match.start(1), match.end(1), match.start(1))


def _function(node: Node) -> Node | None:
    """Return the function of which the string at `node` is the docstring."""
    start = node.start_byte
    parent: Node | None = node
    while parent and parent.start_byte == start and parent.type != "block":
        parent = parent.parent
    if parent and parent.type == "block" and parent.parent and parent.parent.type == "function_definition":
        return parent.parent
    return None


def _undress(raw: str) -> str:
    quoted = raw.lstrip("rRuU")
    inside = quoted.strip(quoted[:1])
    if raw[:1] not in "rR":
        inside = re.sub(r"\\(\n|[\"'\\])", lambda m: m[1].strip("\n"), inside)
    return cleandoc(inside)


LANGUAGE = Language(
    grammars=(("tree_sitter_python", "language"),),
    places=_places,
    function=_function,
    undress=_undress,
    name=lambda node: field(node, "name"),
    classes=frozenset({"class_definition"}),
)
