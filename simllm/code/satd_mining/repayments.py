"""Repayments of debt in a history: changed files, deleted comments, and the rules that they must fulfil."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice, tee
from pathlib import PurePath

from simllm.code.git_folders import HASH
from simllm.code.git_repository import MOST_FILES, Git, Repository, RepositoryLimitError
from simllm.code.languages.language import LANGUAGE_OF_SUFFIX
from simllm.code.normal_form import normal_forms
from simllm.code.satd_mining.comments import DebtWords, FileComment, FileFunction, ParsedFile

_LARGEST_LINE = 1 << 16  # bytes of a path
_WINDOW = 16  # commits that git compares before it must answer
_MARK = b"=\n"  # is no commit, so that `git diff-tree` repeats it at once
_RENAMES = 200  # deleted or added files in a commit; with more, git finds renames only of unchanged files


@dataclass(frozen=True)
class FileChange:
    """A file that exists before and after a commit, with different contents.

    Attributes:
        path: The path in the repository after the commit.
        old: The hash of the git object with the content before the commit.
        new: The hash of the git object with the content after the commit.
        old_path: The path before the commit.
    """

    commit: str
    path: str
    old: str
    new: str
    old_path: str


@dataclass(frozen=True)
class FileVersions:
    """The contents of a file before and after a commit; `path` is the one after it."""

    commit: str
    path: str
    before: bytes
    after: bytes
    language: str
    old_path: str = ""


def file_changes(
    repository: Repository, suffixes: Iterable[str], renames: bool = True
) -> Iterator[FileChange]:
    """Yield the files that each commit changes, from the first commit to HEAD, without links and submodules.

    Files must exist before and after the commit. A merge counts as one commit, with all changes of the merged
    branch. `suffixes` are ends of paths, such as ".py". With `renames`, git reads the contents of files, and
    fails if some are missing, as in a partial clone. Over `MOST_FILES` in a commit are an `InputError`.
    """
    # Added and deleted files have no function on both sides. External diffs and textconv run programs.
    options = ["-r", "-m", "--raw", "-z", "--no-abbrev", "--no-ext-diff", "--no-textconv", "--diff-filter=MR"]
    options += ["-M", f"-l{_RENAMES}"] if renames else ["--no-renames"]
    paths = (f"*{suffix}" for suffix in suffixes)
    # The history follows first parents, so that a merge counts as one commit.
    listing = repository.git("rev-list", "--first-parent", "--parents", "--reverse", repository.head)
    with listing as commits, repository.git("diff-tree", "--stdin", *options, "--", *paths) as git:
        # The first commit, whose files are all new, has no parent, and is left out.
        pairs = (words[:2] for line in commits.fields(b"\n", _LARGEST_LINE) if len(words := line.split()) > 1)
        # One commit at a time would make this process and git wait for each other.
        while window := list(islice(pairs, _WINDOW)):
            git.write(b"".join(b" ".join(pair) + b"\n" for pair in window) + _MARK)
            yield from _window(git, repository)


def _window(git: Git, repository: Repository) -> Iterator[FileChange]:
    """Yield the changed files of some commits, up to the mark that ends the output about these commits."""
    commit, changed = "", 0
    while not git.starts_with(_MARK):
        field = git.field(b"\0", _LARGEST_LINE)
        if field and HASH.match(field):
            commit, changed = field.decode(), 0
            continue
        words = (field or b"").lstrip(b":").split()
        path = old_path = git.field(b"\0", _LARGEST_LINE) if len(words) == 5 else None
        # A rename has two paths, the old one first.
        if path is not None and words[4].startswith(b"R"):
            path = git.field(b"\0", _LARGEST_LINE)
        if path is None or old_path is None:
            raise git.ended()
        old_mode, new_mode, old, new, _ = words
        changed += 1
        if changed > MOST_FILES:
            raise RepositoryLimitError(f"{repository.folder}: a commit of more than {MOST_FILES:,} files")
        # 100644 and 100755 are regular files; links and submodules have other modes.
        if old != new and old_mode.startswith(b"100") and new_mode.startswith(b"100"):
            paths = [each.decode("utf-8", "replace") for each in (path, old_path)]
            yield FileChange(commit, paths[0], old.decode(), new.decode(), paths[1])


def file_versions(
    repository: Repository,
    suffixes: Iterable[str],
    is_wanted: Callable[[bytes], bool],
    largest: int,
    renames: bool = True,
) -> Generator[FileVersions]:
    """Yield the contents of the files of `file_changes`, before and after each commit.

    Files are left out if they were empty before, if their content is missing or has over `largest` bytes, or
    if `is_wanted` refuses the content before the commit.
    """
    # Two iterators over the same changes: one feeds git, the other waits for the contents. `tee` keeps only
    # the few changes between them.
    changes, same_changes = tee(file_changes(repository, suffixes, renames))
    olds = repository.contents((change.old for change in same_changes), largest)
    wanted, same_wanted = tee(
        (change, old) for change, old in zip(changes, olds, strict=True) if old and is_wanted(old)
    )
    # Most files do not admit debt, so that the content after the commit is read for few of them only.
    news = repository.contents((change.new for change, _ in same_wanted), largest)
    for (change, old), new in zip(wanted, news, strict=True):
        if new is not None:
            language = LANGUAGE_OF_SUFFIX.get(PurePath(change.path).suffix)
            # A hidden file such as `.py` has no suffix.
            if language:
                yield FileVersions(change.commit, change.path, old, new, language, change.old_path)


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
