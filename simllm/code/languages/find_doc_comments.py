"""Search for comments that may be documentation: block comments `/** ... */`, and line comments."""

from __future__ import annotations

import re
from collections.abc import Iterator

from simllm.code.languages.language import CommentPlace

# Each pattern matches a whole comment (or several in a row), even if the comment is never closed. Therefore
# each byte of a file is matched only once, in linear time.
_BLOCK = re.compile(rb"/\*\*(?![*/])(?s:.*?)(?:\*/|\Z)")
_NEXT = re.compile(rb"\s*(?:(?://[^\n]*|/\*(?!\*)(?s:.*?)(?:\*/|\Z))\s*)*+")
_APART = re.compile(rb"[ \t]*\n[ \t]*\n")
_NOTHING = (b"", b"<?php", b"'use strict';", b'"use strict";')


def block_comments(code: bytes) -> Iterator[CommentPlace]:
    """Yield the places of each comment `/** ... */` that has code after it, except for a file header."""
    opening = True
    for match in _BLOCK.finditer(code):
        # A file header is the first comment, if a blank line follows it, and nothing stands before it except
        # a line `<?php` or `'use strict';`.
        header = opening and code[: match.start()].strip() in _NOTHING and _APART.match(code, match.end())
        opening = False
        after = _NEXT.match(code, match.end())
        if after and after.end() < len(code) and not header:
            yield CommentPlace(match.start(), match.end(), after.end())


def line_comments(code: bytes, pattern: re.Pattern[bytes]) -> Iterator[CommentPlace]:
    """Yield the places of the comments directly before a declaration.

    Group 1 of the pattern matches consecutive comment lines; group 2 matches the beginning of a declaration
    after them. Matches without group 2 are skipped.
    """
    for match in pattern.finditer(code):
        if match.start(2) >= 0:
            indent = len(match[1]) - len(match[1].lstrip())
            yield CommentPlace(match.start(1) + indent, match.end(1), match.start(2))
