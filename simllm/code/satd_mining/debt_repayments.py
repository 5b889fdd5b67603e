"""Search for repayments in the files that a commit changes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath

from simllm.code.code_normalization import normal_forms
from simllm.code.languages.language_registry import LANGUAGE_OF_SUFFIX
from simllm.code.satd_mining.comment_to_function import FileComment, FileFunction, ParsedFile
from simllm.code.satd_mining.git_history import FileVersions
from simllm.code.satd_mining.todo_comments import admits_debt, debt_lines, words_of_debt

LARGEST_FILE = 1 << 20  # bytes; larger files are usually data
RULES = (
    "comments with todo, fixme, hack or xxx are deleted",
    "have three words or more on that line",
    "stand in or above a function",
    "the function lives on",
    "the function's code changes",
    "no other such comment before",
    "no such comment after",
)  # in the order in which they are checked


@dataclass(frozen=True)
class Repayment:
    """A function before and after a commit that may have repaid a technical debt.

    Attributes:
        commit: The hash of the commit.
        path: The path of the file after the commit.
        comment: The deleted comment, with comment marks such as `#`.
        source: The code of the function before the commit. It includes the comment, even if the comment
            stands above the function.
        reference: The code of the function after the commit. If the deleted comment stood above the function,
            and a new comment stands there now, the new comment is included.
    """

    commit: str
    path: str
    function: str
    language: str
    comment: str
    source: str
    reference: str


def find_repayments(versions: FileVersions) -> Iterator[tuple[int, Repayment | None]]:
    """Check each comment about technical debt that a commit deletes from a file.

    Yields the number of `RULES` that the comment fulfils before it breaks one, and the repayment if it
    fulfils all seven.
    """
    # A change of line ends alone is no change of a function.
    old, new = (code.replace(b"\r\n", b"\n") for code in (versions.before, versions.after))
    language = LANGUAGE_OF_SUFFIX.get(PurePath(versions.path).suffix)
    if not language or not debt_lines(old) - debt_lines(new):  # saves the time for parsing
        return
    try:
        before, after = ParsedFile(old, language), ParsedFile(new, language)
        for comment in _deleted_debts(before, after):
            yield _check(comment, before, after, versions, language)
    except TimeoutError:  # data rather than code
        return


def _words(comment: FileComment) -> tuple[str, ...]:
    """Return the words of a comment; two comments count as equal if their words are equal."""
    return tuple(re.findall(r"\w+", comment.text))


def _deleted_debts(before: ParsedFile, after: ParsedFile) -> Iterator[FileComment]:
    """Yield the comments about technical debt that occur less often after the commit than before."""
    # Counts, because a comment that was only moved within the file is not deleted.
    left = Counter(map(_words, after.comments))
    counts = Counter(map(_words, before.comments))
    for comment in filter(admits_debt, before.comments):
        if left[_words(comment)] < counts[_words(comment)]:
            yield comment


def _check(
    comment: FileComment, before: ParsedFile, after: ParsedFile, versions: FileVersions, language: str
) -> tuple[int, Repayment | None]:
    """Check all rules but the first for a deleted comment that admits debt; see `find_repayments`."""
    if words_of_debt(comment) < 3:
        return 1, None
    if not (old := before.function_of(comment)):
        return 2, None
    if not (new := _same_function(old, before, after)):
        return 3, None
    is_above = before.comment_above(old) == comment
    source = before.text(comment.start if is_above else old.start, old.end)
    reference = after.text(_start_of_reference(new, before, after) if is_above else new.start, new.end)
    forms = normal_forms([source, reference], language)
    # The normal forms leave out layout, comments, docstrings and imports.
    if forms[0] == forms[1]:
        return 4, None
    if any(other != comment and admits_debt(other) for other in before.comments_of(old)):
        return 5, None
    if any(map(admits_debt, after.comments_of(new))):
        return 6, None
    commit, path = versions.commit, versions.path
    return 7, Repayment(commit, path, old.name, language, comment.text, source, reference)


def _same_function(function: FileFunction, before: ParsedFile, after: ParsedFile) -> FileFunction | None:
    """Find the new version of a function after a commit; None if no function fits, or several do."""
    old, new = (
        [other for other in file.functions if (other.name, other.kind) == (function.name, function.kind)]
        for file in (before, after)
    )
    # Overloads share a name; their parameters tell them apart.
    if len(old) > 1 or len(new) > 1:
        signature = before.signature(function)
        old = [other for other in old if before.signature(other) == signature]
        new = [other for other in new if after.signature(other) == signature]
    return new[0] if len(old) == len(new) == 1 else None


def _start_of_reference(function: FileFunction, before: ParsedFile, after: ParsedFile) -> int:
    """Return the first byte of a function after a commit, or of a new comment directly above it."""
    above = after.comment_above(function)
    # A comment that was in the file before has nothing to do with the repayment.
    is_new = above and _words(above) not in map(_words, before.comments)
    return above.start if above and is_new else function.start
