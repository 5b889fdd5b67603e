"""Search for comments in source code, and removal of comment marks such as `//`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from inspect import cleandoc

from simllm.code.languages.language import CommentPlace

# Each pattern matches a whole comment (or several in a row), even if the comment is never closed. Therefore
# each byte of a file is matched only once, in linear time.
_BLOCK = re.compile(rb"/\*\*(?![*/])(?s:.*?)(?:\*/|\Z)")
_NEXT = re.compile(rb"\s*(?:(?://[^\n]*|/\*(?!\*)(?s:.*?)(?:\*/|\Z))\s*)*+")
_APART = re.compile(rb"[ \t]*\n[ \t]*\n")
_NOTHING = (b"", b"<?php", b"'use strict';", b'"use strict";')


def block_comments(code: bytes) -> Iterator[CommentPlace]:
    """Yield the place of each comment `/** ... */` that has code after it, except for a file header.

    Only the first comment of this form can be a file header. It is a file header if a blank line follows it
    and nothing stands before it. A single line such as `<?php` may stand before it, however.

    Args:
        code: The content of a source file.
    """
    opening = True
    for match in _BLOCK.finditer(code):
        header = opening and code[: match.start()].strip() in _NOTHING and _APART.match(code, match.end())
        opening = False
        after = _NEXT.match(code, match.end())
        if after and after.end() < len(code) and not header:
            yield CommentPlace(match.start(), match.end(), after.end())


def line_comments(code: bytes, pattern: re.Pattern[bytes]) -> Iterator[CommentPlace]:
    """Yield the places of line comments that stand directly before a declaration.

    Args:
        code: The content of a source file.
        pattern: A regular expression. Its group 1 matches consecutive comment lines. Its group 2 matches
            the beginning of a declaration directly after them. Matches without group 2 are skipped.
    """
    for match in pattern.finditer(code):
        if match.start(2) >= 0:
            indent = len(match[1]) - len(match[1].lstrip())
            yield CommentPlace(match.start(1) + indent, match.end(1), match.start(2))


def strip_block_marks(raw: str) -> str:
    """Remove the comment marks `/**`, `*/` and `*` from a block comment.

    There are two cases for the lines after the first line:

    - Each of these lines begins with a star or is empty. Then all these stars are removed.
    - One of these lines has text but no star at its beginning. Then the stars on other lines may mark list
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
