"""Comments that admit technical debt: those with one of the words todo, fixme, hack and xxx."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator

from simllm.code.satd_mining.comment_to_function import FileComment

_KEYWORD = re.compile(r"todo|fixme|hack|xxx", re.IGNORECASE | re.ASCII)
_LOWER_CASE_DEBT = re.compile(rb"todo|fixme|hack|xxx")


def admits_debt(comment: FileComment) -> bool:
    """Return whether a comment has one of the words todo, fixme, hack and xxx, in lower or upper case.

    Only whole words count: "TODO:", "todo(bob)" and "@todo", but not "todos", "ToDoList" or "hacky".
    """
    return any(True for _ in _lines_with_debt(comment))


def words_of_debt(comment: FileComment) -> int:
    """Return the number of words on the line that admits the debt; the most if there are several lines."""
    # The other lines may belong to another comment, as line comments on consecutive lines are joined.
    return max((len(re.findall(r"\w+", line)) for line in _lines_with_debt(comment)), default=0)


def _lines_with_debt(comment: FileComment) -> Iterator[str]:
    for line in comment.text.splitlines():
        if any(_is_whole_word(line, *found.span()) for found in _KEYWORD.finditer(line)):
            yield line


def _is_whole_word(text: str, start: int, end: int) -> bool:
    around = text[max(0, start - 1) : start] + text[end : end + 1]
    return not any(map(_continues_a_word, around))


def _continues_a_word(character: str) -> bool:
    # Chinese or Japanese letters (Lo) follow a keyword without a blank; an accent (Mn) belongs to its letter.
    return character == "_" or unicodedata.category(character) in ("Lu", "Ll", "Lt", "Lm", "Mn", "Nd")


def may_admit_debt(code: bytes) -> bool:
    """Return whether a file contains todo, fixme, hack or xxx: a fast check before a file is parsed."""
    return _LOWER_CASE_DEBT.search(code.lower()) is not None


def debt_lines(code: bytes) -> Counter[bytes]:
    """Count how often each line with todo, fixme, hack or xxx occurs in a file, without outer white space.

    A commit has deleted such a line only if a count is lower after it. Other files need not be parsed.
    """
    # By the start of the line, so that a line with two such words counts once.
    lines, code = {}, code + b"\n"
    for match in _LOWER_CASE_DEBT.finditer(code.lower()):
        start = code.rfind(b"\n", 0, match.start()) + 1
        lines[start] = code[start : code.find(b"\n", start)].strip()
    return Counter(lines.values())
