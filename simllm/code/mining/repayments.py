"""Search for repayments: commits that delete the comment of a technical debt and change its function."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath

from simllm.code.git_history import FileVersions
from simllm.code.languages import LANGUAGES
from simllm.code.mining.parsed_file import FileComment, FileFunction, ParsedFile
from simllm.code.normal_form import normal_forms

LARGEST_FILE = 1 << 20  # bytes; larger files are usually data
RULES = (
    "comments with todo, fixme, hack or xxx are deleted",
    "have three words or more",
    "stand in or above a function",
    "the function lives on",
    "the function's code changes",
    "no other such comment before",
    "no such comment after",
)  # in the order in which they are checked

_DEBT = re.compile(r"\b(?:(?:todo|fixme|hack)\w*|\w*(?:todo|fixme|hack)|xxx)\b", re.IGNORECASE)
_LOWER_CASE_DEBT = re.compile(rb"todo|fixme|hack|xxx")


@dataclass(frozen=True)
class Repayment:
    """A function whose technical debt may have been repaid by a commit.

    Attributes:
        commit: The hash of the commit.
        path: The path of the file after the commit.
        function: The name of the function.
        language: The programming language.
        comment: The comment that admits the debt, with comment marks.
        source: The function before the commit; if the comment stands above the function, from the comment.
        reference: The function after the commit.
    """

    commit: str
    path: str
    function: str
    language: str
    comment: str
    source: str
    reference: str


def may_admit_debt(code: bytes) -> bool:
    """Return whether a file may have comments that admit technical debt."""
    return _LOWER_CASE_DEBT.search(code.lower()) is not None


def find_repayments(versions: FileVersions) -> Iterator[tuple[int, Repayment | None]]:
    """Check each comment that admits technical debt and that a commit deletes from a file.

    Args:
        versions: The contents of the file before and after the commit.

    Yields:
        For each comment: the number of rules (see `RULES`) that the comment fulfils before it breaks one.
        If it fulfils all rules: also the repayment.
    """
    old, new = (code.replace(b"\r\n", b"\n") for code in (versions.before, versions.after))
    language = LANGUAGES.get(PurePath(versions.path).suffix)
    if not language or not _debt_lines(old) - _debt_lines(new):  # saves the time for parsing
        return
    try:
        before, after = ParsedFile(old, language), ParsedFile(new, language)
        for comment in _deleted_debts(before, after):
            yield _check(comment, before, after, versions, language)
    except TimeoutError:  # data rather than code
        return


def _debt_lines(code: bytes) -> Counter[bytes]:
    """Count the lines that may admit debt, without white space around them."""
    lines, code = {}, code + b"\n"
    for match in _LOWER_CASE_DEBT.finditer(code.lower()):
        start = code.rfind(b"\n", 0, match.start()) + 1
        lines[start] = code[start : code.find(b"\n", start)].strip()
    return Counter(lines.values())


def _words(comment: FileComment) -> tuple[str, ...]:
    """Return the words of a comment, which do not depend on line breaks and comment marks."""
    return tuple(re.findall(r"\w+", comment.text))


def _admits_debt(comment: FileComment) -> bool:
    return _DEBT.search(comment.text) is not None


def _deleted_debts(before: ParsedFile, after: ParsedFile) -> Iterator[FileComment]:
    """Yield the comments with debt that are less often in a file than before; moved comments are not."""
    left = Counter(map(_words, after.comments))
    counts = Counter(map(_words, before.comments))
    for comment in filter(_admits_debt, before.comments):
        if left[_words(comment)] < counts[_words(comment)]:
            yield comment


def _check(
    comment: FileComment, before: ParsedFile, after: ParsedFile, versions: FileVersions, language: str
) -> tuple[int, Repayment | None]:
    """Check by seven rules, in order, whether the commit that deleted a comment repaid its technical debt.

    Returns:
        The number of rules up to the first that fails, and None; if all hold, 7 and the repayment.
    """
    if len(_words(comment)) < 3:
        return 1, None
    if not (old := before.function_of(comment)):
        return 2, None
    if not (new := _same_function(old, before, after)):
        return 3, None
    is_above = before.comment_above(old) == comment
    source = before.text(comment.start if is_above else old.start, old.end)
    reference = after.text(_start_of_reference(new, before, after) if is_above else new.start, new.end)
    forms = normal_forms([source, reference], language)
    if forms[0] == forms[1]:
        return 4, None
    if any(other != comment and _admits_debt(other) for other in before.comments_of(old)):
        return 5, None
    if any(map(_admits_debt, after.comments_of(new))):
        return 6, None
    commit, path = versions.commit, versions.path
    return 7, Repayment(commit, path, old.name, language, comment.text, source, reference)


def _same_function(function: FileFunction, before: ParsedFile, after: ParsedFile) -> FileFunction | None:
    """Find a function after the commit by its name and kind; if it is overloaded, also by its signature."""
    old, new = (
        [other for other in file.functions if (other.name, other.kind) == (function.name, function.kind)]
        for file in (before, after)
    )
    if len(old) > 1 or len(new) > 1:
        signature = before.signature(function)
        old = [other for other in old if before.signature(other) == signature]
        new = [other for other in new if after.signature(other) == signature]
    return new[0] if len(old) == len(new) == 1 else None


def _start_of_reference(function: FileFunction, before: ParsedFile, after: ParsedFile) -> int:
    """Return where a function after the commit begins, with a comment above it that replaces the debt."""
    above = after.comment_above(function)
    is_new = above and _words(above) not in map(_words, before.comments)
    return above.start if above and is_new else function.start
