"""Rules that find documented Ruby methods: a comment documents the method (`def`) directly after it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from simllm.code.languages.cursor import NodePath, path_to_type
from simllm.code.languages.language import CommentPlace, Language, field_text, line_comments, strip_line_marks

_LINES = re.compile(rb"(?m)^((?:[ \t]*#[^\n]*\n)++)[ \t]*(?:(?!def\b)[a-z_]\w*[ \t(]+)?(def\b)?")
_BLOCK = re.compile(rb"(?m)^(=begin(?s:.*?)(?:^=end|\Z))[^\n]*\n?[ \t]*(def\b)?")
_FUNCTIONS = frozenset({"method", "singleton_method"})


def _places(code: bytes) -> Iterator[CommentPlace]:
    """Yield the places of each comment directly before a Ruby method, in the order of the file."""
    places = [*line_comments(code, _LINES), *(line_comments(code, _BLOCK) if b"\n=begin" in code else ())]
    yield from sorted(places, key=lambda place: place.start)


def _function(path: NodePath) -> NodePath | None:
    return path_to_type(path, _FUNCTIONS)


def _strip_marks(raw: str) -> str:
    """Remove comment marks, magic comments and hidden lines from a Ruby comment."""
    if raw.startswith("=begin"):
        return re.sub(r"\A=begin[^\n]*|\n=end.*\Z", "", raw).strip()
    # RDoc hides the lines from `#--` to `#++`, or to the end of the comment.
    hidden = re.compile(r"(?ms)^[ \t]*#--[ \t]*$.*?(?:^[ \t]*#\+\+[ \t]*$|\Z)")
    # A magic comment is a setting such as `# frozen_string_literal: true`.
    magic = re.compile(r"(?m)^[ \t]*#[ \t]*(?:frozen_string_literal|encoding|rubocop|typed:|-\*-).*$")
    return strip_line_marks(magic.sub("", hidden.sub("", raw)), "#+")


LANGUAGE = Language(
    grammars=(("tree_sitter_ruby", "language"),),
    places=_places,
    function=_function,
    strip_marks=_strip_marks,
    name=lambda node: field_text(node, "name"),
    classes=frozenset({"class", "module"}),
)
