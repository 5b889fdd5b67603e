"""The history of an untrusted git repository: the files that each commit changes."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, tee

from simllm.code.git_refs import HASH
from simllm.code.git_repository import MOST_FILES, Git, Repository, RepositoryLimitError

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
    """

    commit: str
    path: str
    old: str
    new: str


@dataclass(frozen=True)
class FileVersions:
    """The contents of a file before and after a commit; the path is that after it."""

    commit: str
    path: str
    before: bytes
    after: bytes


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
        path = git.field(b"\0", _LARGEST_LINE) if len(words) == 5 else None
        # A rename has two paths, the old one first.
        if path is not None and words[4].startswith(b"R"):
            path = git.field(b"\0", _LARGEST_LINE)
        if path is None:
            raise git.ended()
        old_mode, new_mode, old, new, _ = words
        changed += 1
        if changed > MOST_FILES:
            raise RepositoryLimitError(f"{repository.folder}: a commit of more than {MOST_FILES:,} files")
        # 100644 and 100755 are regular files; links and submodules have other modes.
        if old != new and old_mode.startswith(b"100") and new_mode.startswith(b"100"):
            yield FileChange(commit, path.decode("utf-8", "replace"), old.decode(), new.decode())


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
            yield FileVersions(change.commit, change.path, old, new)
