"""Python: a docstring is the first statement of a function."""

from __future__ import annotations

import re
from collections.abc import Iterator
from inspect import cleandoc

from simllm.code.languages.base import Language, Place, field
from simllm.code.languages.node_path import NodePath

# A colon at the end of a line, empty lines and comments, and a string. Where no string follows, the
# match is still as long: no colon in these comments can do better, and the file is read once.
_DOCSTRING = re.compile(
    rb""":[ \t]*(?:#[^\n]*)?\n(?:[ \t]*(?:#[^\n]*)?\n)*+[ \t]*"""
    rb"""([rRuU]?(?:(\"\"\"|''')(?s:.*?)(?:(?<!\\)\2|\Z)|"[^"\n]*"|'[^'\n]*'))?"""
)


def _places(code: bytes) -> Iterator[Place]:
    for match in _DOCSTRING.finditer(code):
        if match[1]:
            yield Place(match.start(1), match.end(1), match.start(1))


def _function(path: NodePath) -> NodePath | None:
    """Return the path to the function of which the string at the end of `path` is the docstring."""
    start = path[-1].start_byte
    at = len(path) - 1
    while at > 0 and path[at].start_byte == start and path[at].type != "block":
        at -= 1
    if at > 0 and path[at].type == "block" and path[at - 1].type == "function_definition":
        return path[:at]
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
