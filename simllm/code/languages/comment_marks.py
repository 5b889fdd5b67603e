"""Removal of comment marks, such as `//` and `/**`, from the text of a comment."""

from __future__ import annotations

import re
from inspect import cleandoc


def strip_block_marks(raw: str) -> str:
    """Remove the comment marks `/**`, `*/` and `*` from a block comment."""
    inside = re.sub(r"\A/\*+", "", raw)
    if inside.rstrip().endswith("*/"):
        inside = inside.rstrip()[:-1].rstrip("*")
    lines = inside.split("\n")
    starred = all(re.match(r"\s*(?:\*|\Z)", line) for line in lines[1:])
    # If a line has text but no star at its beginning, the stars of other lines may mark list items. Then a
    # star is removed only if it stands alone on its line, or before a tag like `@param`.
    star = re.compile(r"\A\s*\*+" if starred else r"\A\s*\*(?=\s*(?:@|\Z))")
    return cleandoc("\n".join([lines[0], *(star.sub("", line) for line in lines[1:])]))


def strip_line_marks(raw: str, mark: str) -> str:
    """Remove a mark (a regular expression) from all lines of a comment, and their common indentation."""
    return cleandoc("\n" + "\n".join(re.sub(rf"\A\s*{mark}", "", line) for line in raw.splitlines()))
