"""Comments that admit technical debt: those with one of the words todo, fixme, hack and xxx."""

from __future__ import annotations

import re
from collections import Counter

from simllm.code.satd_mining.comment_to_function import FileComment

_DEBT = re.compile(r"\b(?:(?:todo|fixme|hack)\w*|\w*(?:todo|fixme|hack)|xxx)\b", re.IGNORECASE)
_LOWER_CASE_DEBT = re.compile(rb"todo|fixme|hack|xxx")


def admits_debt(comment: FileComment) -> bool:
    """Return whether a comment has one of the words todo, fixme, hack and xxx, in lower or upper case."""
    return _DEBT.search(comment.text) is not None


def may_admit_debt(code: bytes) -> bool:
    """Return whether a file contains todo, fixme, hack or xxx, in lower or upper case.

    This check is fast, because it does not parse the file. Only files that pass the check are parsed.
    """
    return _LOWER_CASE_DEBT.search(code.lower()) is not None


def debt_lines(code: bytes) -> Counter[bytes]:
    """Count how often each line with todo, fixme, hack or xxx (in lower or upper case) occurs in a file.

    White space at the beginning and end of a line is ignored. The caller compares the counts before and after
    a commit. The commit has deleted such a line only if a count is lower after it. Other files are not
    parsed, to save time.
    """
    lines, code = {}, code + b"\n"
    for match in _LOWER_CASE_DEBT.finditer(code.lower()):
        start = code.rfind(b"\n", 0, match.start()) + 1
        lines[start] = code[start : code.find(b"\n", start)].strip()
    return Counter(lines.values())
