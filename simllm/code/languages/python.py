"""Rules that find documented Python functions: functions whose first statement is a docstring."""

from __future__ import annotations

import re
from collections.abc import Iterator
from inspect import cleandoc

from simllm.code.languages.language import CommentPlace, Language
from simllm.code.languages.syntax_node_text import field
from simllm.code.languages.syntax_tree_cursor import NodePath

# A colon at the end of a line, then empty lines and comments, then a string. The string is optional, so that
# each byte of a file is matched only once.
_DOCSTRING = re.compile(
    rb""":[ \t]*(?:#[^\n]*)?\n(?:[ \t]*(?:#[^\n]*)?\n)*+[ \t]*"""
    rb"""([rRuU]?(?:(\"\"\"|''')(?s:.*?)(?:(?<!\\)\2|\Z)|"[^"\n]*"|'[^'\n]*'))?"""
)


def _places(code: bytes) -> Iterator[CommentPlace]:
    """Find the strings in Python code that may be docstrings.

    The last code before such a string is a colon at the end of a line.

    Yields:
        The byte offsets of each string, in the order of the file.
    """
    for match in _DOCSTRING.finditer(code):
        if match[1]:
            yield CommentPlace(match.start(1), match.end(1), match.start(1))


def _function(path: NodePath) -> NodePath | None:
    """Find the Python function to which a docstring belongs.

    Args:
        path: The syntax nodes from the root to the docstring.

    Returns:
        The syntax nodes from the root to the function; None if the string is not a function's docstring.
    """
    start = path[-1].start_byte
    at = len(path) - 1
    while at > 0 and path[at].start_byte == start and path[at].type != "block":
        at -= 1
    if at > 0 and path[at].type == "block" and path[at - 1].type == "function_definition":
        return path[:at]
    return None


def _strip_marks(raw: str) -> str:
    """Remove the quotes and the common indentation from the source code of a Python docstring.

    If the string is not raw (`r"..."`), an escaped quote or backslash is replaced by the plain character, and
    a line break after a backslash is removed, together with the backslash.
    """
    quoted = raw.lstrip("rRuU")
    inside = quoted.strip(quoted[:1])
    if raw[:1] not in "rR":
        inside = re.sub(r"\\(\n|[\"'\\])", lambda m: m[1].strip("\n"), inside)
    return cleandoc(inside)


LANGUAGE = Language(
    grammars=(("tree_sitter_python", "language"),),
    places=_places,
    function=_function,
    strip_marks=_strip_marks,
    name=lambda node: field(node, "name"),
    classes=frozenset({"class_definition"}),
)
