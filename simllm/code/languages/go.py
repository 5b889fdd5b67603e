"""Rules that find documented Go functions: a comment documents the function directly after it.

Methods of interfaces count as functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from simllm.code.languages.cursor import NodePath, path_to_type
from simllm.code.languages.language import (
    CommentPlace,
    Language,
    field_text,
    line_comments,
    strip_block_marks,
    strip_line_marks,
)

_LINES = re.compile(rb"(?m)^((?:[ \t]*//[^\n]*\n)++)[ \t]*(func\b|[A-Z]\w*\()?")
_BLOCK = re.compile(rb"(?m)^(/\*(?s:.*?)(?:\*/|\Z))[ \t]*\n?(func\b)?")
_FUNCTIONS = frozenset({"function_declaration", "method_declaration", "method_elem"})


def _places(code: bytes) -> Iterator[CommentPlace]:
    """Yield the places of each comment directly before a Go function, in the order of the file."""
    places = [*line_comments(code, _LINES), *(line_comments(code, _BLOCK) if b"*/\nfunc" in code else ())]
    yield from sorted(places, key=lambda place: place.start)


def _function(path: NodePath) -> NodePath | None:
    return path_to_type(path, _FUNCTIONS)


def _strip_marks(raw: str) -> str:
    """Remove the comment marks from a Go comment, and drop compiler directives such as `//go:build`."""
    if raw.startswith("/*"):
        return strip_block_marks(raw)
    directives = re.compile(r"(?<![ \t])[ \t]*//(?:[a-z]+:[a-z]|nolint|export |line |\+build)[^\n]*\n")
    return strip_line_marks(directives.sub("", raw), "//")


def _name(node: Node) -> str:
    """Return the name of a Go function. For a method, this is `Type.name` with the type of the receiver."""
    # Only the end is searched, because a receiver in hostile code may be very long.
    receiver = re.search(r"\*?\s*(\w+)\s*(?:\[[^\]]*\])?\s*\)\Z", field_text(node, "receiver")[-1_000:])
    return (f"{receiver[1]}." if receiver else "") + field_text(node, "name")


LANGUAGE = Language(
    grammars=(("tree_sitter_go", "language"),),
    places=_places,
    function=_function,
    strip_marks=_strip_marks,
    name=_name,
    classes=frozenset({"type_spec"}),
)
