"""Removal of comment marks, such as `//` and `/**`, from the text of a comment."""

from __future__ import annotations

import re
from inspect import cleandoc


def strip_block_marks(raw: str) -> str:
    """Remove the comment marks `/**`, `*/` and `*` from a block comment.

    Stars are treated differently in two cases:

    - If every line after the first begins with a star or is empty, the stars at the beginnings are removed.
    - If one of these lines has text but no star at its beginning, the stars of other lines may mark list
      items. Therefore a star is removed only if it stands alone on its line, or before a tag like `@param`.

    Args:
        raw: The comment as it stands in the source.
    """
    inside = re.sub(r"\A/\*+", "", raw)
    if inside.rstrip().endswith("*/"):
        inside = inside.rstrip()[:-1].rstrip("*")
    lines = inside.split("\n")
    starred = all(re.match(r"\s*(?:\*|\Z)", line) for line in lines[1:])
    star = re.compile(r"\A\s*\*+" if starred else r"\A\s*\*(?=\s*(?:@|\Z))")
    return cleandoc("\n".join([lines[0], *(star.sub("", line) for line in lines[1:])]))


def strip_line_marks(raw: str, mark: str) -> str:
    """Remove the comment mark from each line of a comment, and the indentation that all lines share.

    Args:
        raw: The comment as it stands in the source.
        mark: A regular expression for the comment mark, such as "//".
    """
    return cleandoc("\n" + "\n".join(re.sub(rf"\A\s*{mark}", "", line) for line in raw.splitlines()))
