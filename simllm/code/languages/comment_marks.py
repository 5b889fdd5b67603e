"""Comments in source code: finding them, and removing their comment marks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from inspect import cleandoc

from simllm.code.languages.base import CommentPlace

# Each pattern matches a whole comment (or several in a row), even if it is never closed. Therefore each
# byte of a file is matched once, which takes linear time.
_BLOCK = re.compile(rb"/\*\*(?![*/])(?s:.*?)(?:\*/|\Z)")
_NEXT = re.compile(rb"\s*(?:(?://[^\n]*|/\*(?!\*)(?s:.*?)(?:\*/|\Z))\s*)*+")
_APART = re.compile(rb"[ \t]*\n[ \t]*\n")
_NOTHING = (b"", b"<?php", b"'use strict';", b'"use strict";')


def block_comments(code: bytes) -> Iterator[CommentPlace]:
    """Yield each comment `/** … */` with its declaration, except for a file header before a blank line."""
    opening = True
    for match in _BLOCK.finditer(code):
        header = opening and code[: match.start()].strip() in _NOTHING and _APART.match(code, match.end())
        opening = False
        after = _NEXT.match(code, match.end())
        if after and after.end() < len(code) and not header:
            yield CommentPlace(match.start(), match.end(), after.end())


def line_comments(code: bytes, pattern: re.Pattern[bytes]) -> Iterator[CommentPlace]:
    """Yield consecutive line comments (group 1 of the pattern) before a declaration (group 2)."""
    for match in pattern.finditer(code):
        if match.start(2) >= 0:
            indent = len(match[1]) - len(match[1].lstrip())
            yield CommentPlace(match.start(1) + indent, match.end(1), match.start(2))


def strip_block_marks(raw: str) -> str:
    """Remove the marks of a block comment, and the stars before its lines if all lines have one."""
    inside = re.sub(r"\A/\*+", "", raw)
    if inside.rstrip().endswith("*/"):
        inside = inside.rstrip()[:-1].rstrip("*")
    lines = inside.split("\n")
    starred = all(re.match(r"\s*(?:\*|\Z)", line) for line in lines[1:])
    star = re.compile(r"\A\s*\*+" if starred else r"\A\s*\*(?=\s*(?:@|\Z))")
    return cleandoc("\n".join([lines[0], *(star.sub("", line) for line in lines[1:])]))


def strip_line_marks(raw: str, mark: str) -> str:
    """Remove a mark (a pattern) from the beginning of each line."""
    return cleandoc("\n" + "\n".join(re.sub(rf"\A\s*{mark}", "", line) for line in raw.splitlines()))
