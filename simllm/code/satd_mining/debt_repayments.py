"""Search for repayments of self-admitted technical debt (SATD).

Developers admit technical debt in comments such as "TODO: handle errors". A commit may repay the debt if it
deletes such a comment and changes the function to which the comment belongs.
"""

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

    Before the commit, a comment such as "TODO: handle errors" in or above the function admits the debt. The
    commit deletes this comment and changes the function.

    Attributes:
        commit: The hash of the commit.
        path: The path of the file after the commit.
        function: The name of the function.
        language: The programming language.
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
    """Find the comments about technical debt that a commit deletes from a file, and check each comment.

    The commit may have repaid the debt if the comment fulfils all seven rules in `RULES`. For example, the
    code of the comment's function must change. The rules are checked in order.

    Args:
        versions: The contents of the file before and after the commit.

    Yields:
        Two values for each comment. The first is the number of rules that the comment fulfils before it
        breaks a rule; 7 if it fulfils all rules. The second is the repayment (the function before and after
        the commit) if the comment fulfils all rules, otherwise None.
    """
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
    """Yield the comments about technical debt that a commit deletes from a file.

    A comment counts as deleted if it occurs less often in the file after the commit than before. Therefore
    comments that were only moved within the file are not yielded.

    Args:
        before: The file before the commit.
        after: The file after the commit.
    """
    left = Counter(map(_words, after.comments))
    counts = Counter(map(_words, before.comments))
    for comment in filter(admits_debt, before.comments):
        if left[_words(comment)] < counts[_words(comment)]:
            yield comment


def _check(
    comment: FileComment, before: ParsedFile, after: ParsedFile, versions: FileVersions, language: str
) -> tuple[int, Repayment | None]:
    """Check whether a commit may have repaid the technical debt that a deleted comment admits.

    The commit may have repaid the debt if the comment fulfils all seven rules in `RULES`. For example, the
    code of the comment's function must change. The first rule, that the comment admits debt and is deleted,
    is not checked here: the caller must have checked it. The other six rules are checked in order.

    Args:
        comment: The deleted comment, which admits technical debt.
        before: The file before the commit.
        after: The file after the commit.
        versions: An object with the commit's hash and the path of the file, to store in the repayment.
        language: The programming language of the file.

    Returns:
        Two values. The first is the number of rules that the comment fulfils before the first rule that it
        breaks: from 1 (only the first rule is fulfilled) to 7 (all rules are fulfilled). The second is the
        repayment if all rules are fulfilled, otherwise None.
    """
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
    if forms[0] == forms[1]:
        return 4, None
    if any(other != comment and admits_debt(other) for other in before.comments_of(old)):
        return 5, None
    if any(map(admits_debt, after.comments_of(new))):
        return 6, None
    commit, path = versions.commit, versions.path
    return 7, Repayment(commit, path, old.name, language, comment.text, source, reference)


def _same_function(function: FileFunction, before: ParsedFile, after: ParsedFile) -> FileFunction | None:
    """Find the new version of a function, in the file after a commit.

    The old and the new version must have the same name and the same type of syntax node. If several functions
    of a file have this name and type, the signatures (the code before the body) must also be equal.

    Args:
        function: The old version, in the file before the commit.
        before: The file before the commit.
        after: The file after the commit.

    Returns:
        The new version; None if no function fits, or if several functions fit.
    """
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
    """Find the position at which the code of a function begins, in the version of a file after a commit.

    The caller extracts the code from this position to the end of the function. If a new comment stands
    directly above the function, the code begins with this comment. A comment is new if no comment in the file
    before the commit has the same words.

    Args:
        function: The function after the commit.
        before: The file before the commit.
        after: The file after the commit.

    Returns:
        The position of the first byte of the new comment, or of the function if there is no new comment. It
        is counted from 0 at the beginning of the file after the commit.
    """
    above = after.comment_above(function)
    is_new = above and _words(above) not in map(_words, before.comments)
    return above.start if above and is_new else function.start
