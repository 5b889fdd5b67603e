"""Repayments of debt in a history: deleted comments, and the rules that they must fulfil."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from simllm.code.git_history import FileVersions
from simllm.code.git_repository import Repository
from simllm.code.normal_form import normal_forms
from simllm.code.satd_mining.comments import DebtWords, FileComment, FileFunction, ParsedFile

LARGEST_FILE = 1 << 20  # bytes; larger files are usually data
RULES = (
    "comments that admit debt are deleted",
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
        date: When the commit entered the history, such as "2020-01-31T12:00:00Z"; None if that is not known.
        created_commit: The commit that wrote the line that admits the debt; None if that is not known.
        created_date: When this commit entered the history.
        lifespan_days: The days between both commits.
        path: The path of the file after the commit.
        line: The number of the line that admits the debt, in the file before the commit, from 1.
        comment: The deleted comment, with comment marks such as `#`.
        source: The code of the function before the commit. It includes the comment, even if the comment
            stands above the function.
        reference: The code of the function after the commit. If the deleted comment stood above the function,
            and a new comment stands there now, the new comment is included.
    """

    commit: str
    date: str | None
    created_commit: str | None
    created_date: str | None
    lifespan_days: float | None
    path: str
    line: int
    function: str
    language: str
    comment: str
    source: str
    reference: str


def find_repayments(versions: FileVersions, words: DebtWords) -> Iterator[tuple[int, Repayment | None]]:
    """Check each comment about technical debt that a commit deletes from a file.

    Yields the number of `RULES` that the comment fulfils before it breaks one, and the repayment, still
    without dates, if it fulfils all seven.
    """
    # A change of line ends alone is no change of a function.
    old, new = (code.replace(b"\r\n", b"\n") for code in (versions.before, versions.after))
    if not words.lines_of(old) - words.lines_of(new):  # saves the time for parsing
        return
    try:
        before, after = ParsedFile(old, versions.language), ParsedFile(new, versions.language)
        for comment in _deleted_debts(before, after, words):
            yield _check(comment, before, after, versions, words)
    except TimeoutError:  # data rather than code
        return


def _words(comment: FileComment) -> tuple[str, ...]:
    """Return the words of a comment; two comments count as equal if their words are equal."""
    return tuple(re.findall(r"\w+", comment.text))


def _deleted_debts(before: ParsedFile, after: ParsedFile, words: DebtWords) -> Iterator[FileComment]:
    """Yield the comments about technical debt that occur less often after the commit than before."""
    # Counts, because a comment that was only moved within the file is not deleted.
    left = Counter(map(_words, after.comments))
    counts = Counter(map(_words, before.comments))
    for comment in filter(words.admit, before.comments):
        if left[_words(comment)] < counts[_words(comment)]:
            yield comment


def _check(
    comment: FileComment, before: ParsedFile, after: ParsedFile, versions: FileVersions, words: DebtWords
) -> tuple[int, Repayment | None]:
    """Check all rules but the first for a deleted comment that admits debt; see `find_repayments`."""
    count, place = words.longest_line(comment)
    if count < 3:
        return 1, None
    if not (old := before.function_of(comment)):
        return 2, None
    if not (new := _same_function(old, before, after)):
        return 3, None
    is_above = before.comment_above(old) == comment
    source = before.text(comment.start if is_above else old.start, old.end)
    reference = after.text(_start_of_reference(new, before, after) if is_above else new.start, new.end)
    forms = normal_forms([source, reference], versions.language)
    # The normal forms leave out layout, comments, docstrings and imports.
    if forms[0] == forms[1]:
        return 4, None
    if any(other != comment and words.admit(other) for other in before.comments_of(old)):
        return 5, None
    if any(map(words.admit, after.comments_of(new))):
        return 6, None
    line = before.code.count(b"\n", 0, comment.start) + place + 1
    place_in_file = (versions.path, line, old.name, versions.language)
    return 7, Repayment(
        versions.commit, None, None, None, None, *place_in_file, comment.text, source, reference
    )


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


def with_dates(repayment: Repayment, repository: Repository, old_path: str) -> Repayment:
    """Add to a repayment when it was made, and which commit wrote the line that admits the debt, and when."""
    removed = repository.date(repayment.commit)
    created = repository.origin(f"{repayment.commit}^", old_path, repayment.line)
    begun = repository.date(created) if created else None
    days = None if removed is None or begun is None else round((removed - begun) / 86_400, 2)
    return replace(
        repayment,
        date=_as_date(removed),
        created_commit=created,
        created_date=_as_date(begun),
        lifespan_days=days,
    )


def _as_date(seconds: int | None) -> str | None:
    """Return seconds since 1970 as a date and time in UTC; None for years that no calendar of Python has."""
    try:
        return None if seconds is None else f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"
    except (ValueError, OverflowError, OSError):
        return None


MOST_TOKENS = 1024  # in the code before (source) and after a change (reference)
LATER_RULES = ("no duplicates", "ASCII", f"at most {MOST_TOKENS:,} tokens each")
_TOKEN = re.compile(r"\w+|[^\w\s]")


def fulfilled_later_rules(repayment: Repayment, seen: set[bytes]) -> int:
    """Return how many of `LATER_RULES` a repayment fulfils before it breaks one, from 0 to 3.

    `seen` has hashes of the earlier repayments, to find duplicates; that of this repayment is added.
    """
    texts = (repayment.source, repayment.reference)
    # Copies of a repository often differ in layout only, so that white space does not count.
    content = hashlib.sha256(json.dumps([text.split() for text in texts]).encode()).digest()
    if content in seen:
        return 0
    seen.add(content)
    if not all(text.isascii() for text in texts):
        return 1
    return 2 + all(sum(1 for _ in _TOKEN.finditer(text)) <= MOST_TOKENS for text in texts)
