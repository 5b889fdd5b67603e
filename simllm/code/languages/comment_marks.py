"""The places of comments in source code, and their text without the marks of comments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from inspect import cleandoc

from simllm.code.languages.base import Place

# Every pattern takes in all of a comment (or of a run of them) even where that is never closed
# and nothing follows: so a file is read once, however long it is.
_BLOCK = re.compile(rb"/\*\*(?![*/])(?s:.*?)(?:\*/|\Z)")
_NEXT = re.compile(rb"\s*(?:(?://[^\n]*|/\*(?!\*)(?s:.*?)(?:\*/|\Z))\s*)*+")
_APART = re.compile(rb"[ \t]*\n[ \t]*\n")
_NOTHING = (b"", b"<?php", b"'use strict';", b'"use strict";')


def blocks(code: bytes) -> Iterator[Place]:
    """Yield each `/** … */` and what follows it, without a header that opens the file and stands apart."""
    opening = True
    for match in _BLOCK.finditer(code):
        header = opening and code[: match.start()].strip() in _NOTHING and _APART.match(code, match.end())
        opening = False
        after = _NEXT.match(code, match.end())
        if after and after.end() < len(code) and not header:
            yield Place(match.start(), match.end(), after.end())


def runs(code: bytes, pattern: re.Pattern[bytes]) -> Iterator[Place]:
    """Yield each run of comments (group 1) that a declaration (group 2) follows."""
    for match in pattern.finditer(code):
        if match.start(2) >= 0:
            indent = len(match[1]) - len(match[1].lstrip())
            yield Place(match.start(1) + indent, match.end(1), match.start(2))


def undress_block(raw: str) -> str:
    """Take the marks of a block comment away, and the stars before its lines if all have one."""
    inside = re.sub(r"\A/\*+", "", raw)
    if inside.rstrip().endswith("*/"):
        inside = inside.rstrip()[:-1].rstrip("*")
    lines = inside.split("\n")
    starred = all(re.match(r"\s*(?:\*|\Z)", line) for line in lines[1:])
    star = re.compile(r"\A\s*\*+" if starred else r"\A\s*\*(?=\s*(?:@|\Z))")
    return cleandoc("\n".join([lines[0], *(star.sub("", line) for line in lines[1:])]))


def undress_lines(raw: str, mark: str) -> str:
    """Take the mark at the beginning of each line away."""
    return cleandoc("\n" + "\n".join(re.sub(rf"\A\s*{mark}", "", line) for line in raw.splitlines()))
