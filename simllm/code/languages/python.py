"""Rules that find documented Python functions: functions whose first statement is a docstring."""

from __future__ import annotations

import re
from collections.abc import Iterator
from inspect import cleandoc

from simllm.code.languages.cursor import NodePath
from simllm.code.languages.language import CommentPlace, Language, field_text

# A colon at the end of a line, then empty lines and comments, then a string. The string is optional, so that
# each byte of a file is matched only once.
_DOCSTRING = re.compile(
    rb""":[ \t]*(?:#[^\n]*)?(?:\n|\Z)(?:[ \t]*(?:#[^\n]*)?\n)*+[ \t]*"""
    rb"""([rRuU]?(?:(\"\"\"|''')(?s:.*?)(?:(?<!\\)\2|\Z)|"[^"\n]*"|'[^'\n]*'))?"""
)


def _places(code: bytes) -> Iterator[CommentPlace]:
    """Yield the places of the strings that may be docstrings: a colon at the end of a line comes before."""
    for match in _DOCSTRING.finditer(code):
        if match[1]:
            yield CommentPlace(match.start(1), match.end(1), match.start(1))


def _function(path: NodePath) -> NodePath | None:
    """Find the Python function to which a docstring belongs; None for another string."""
    start = path[-1].start_byte
    at = len(path) - 1
    while at > 0 and path[at].start_byte == start and path[at].type != "block":
        at -= 1
    if at > 0 and path[at].type == "block" and path[at - 1].type == "function_definition":
        return path[:at]
    return None


def _strip_marks(raw: str) -> str:
    """Remove the quotes and the common indentation from the source code of a Python docstring."""
    quoted = raw.lstrip("rRuU")
    inside = quoted.strip(quoted[:1])
    # Only escapes of quotes, backslashes and line breaks are resolved.
    if raw[:1] not in "rR":
        inside = re.sub(r"\\(\n|[\"'\\])", lambda m: m[1].strip("\n"), inside)
    return cleandoc(inside)


LANGUAGE = Language(
    grammars=(("tree_sitter_python", "language"),),
    places=_places,
    function=_function,
    strip_marks=_strip_marks,
    name=lambda node: field_text(node, "name"),
    classes=frozenset({"class_definition"}),
)
