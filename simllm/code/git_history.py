"""Histories of git repositories: revisions by name, and the files that commits change."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, tee
from pathlib import PurePath

from simllm.code.git_folders import HASH
from simllm.code.git_repository import MOST_FILES, Git, Repository, RepositoryLimitError
from simllm.code.languages.language import LANGUAGE_OF_SUFFIX
from simllm.errors import InputError

_REVISION = re.compile(r"(?P<name>@|[\w][\w./+-]*)(?P<steps>(?:[~^]\d*)*)")
_PLACES = ("{}", "refs/{}", "refs/tags/{}", "refs/heads/{}", "refs/remotes/{}", "refs/remotes/{}/HEAD")


def find_commit(repository: Repository, revision: str) -> str:
    """Return the hash of the commit that a revision such as `HEAD~1`, `v2.0` or `1a2b3c4` names.

    Only names of refs, hashes, and steps (`~2`, `^1`) are known. InputError if there is no such commit.
    """
    found = _REVISION.fullmatch(revision)
    if not found:
        raise InputError(f"revision {revision!r}: expected a branch, a tag or a hash, with steps such as ~1")
    name = "HEAD" if found["name"] == "@" else found["name"]
    refs = (repository.ref(place.format(name)) for place in _PLACES if ".." not in name)
    # A hash needs no ref; git says whether it is one.
    base = next(filter(None, refs), name if re.fullmatch("[0-9a-f]{4,64}", name) else "")
    commit = b""
    if base:
        try:
            question = ("--verify", "--quiet", "--end-of-options", f"{base}{found['steps']}^{{commit}}")
            with repository.git("rev-parse", *question) as git:
                commit = git.field(b"\n", _LARGEST_LINE) or b""
        except InputError:
            if not shutil.which("git"):
                raise
            commit = b""
    if not HASH.match(commit):
        where = "this shallow clone" if repository.is_shallow else "the repository"
        raise InputError(f"revision {revision!r}: no such commit in {where} {repository.folder}")
    return commit.decode()


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
    repository: Repository,
    suffixes: Iterable[str],
    renames: bool = True,
    commits: Sequence[str] | None = None,
) -> Iterator[FileChange]:
    """Yield the files that each commit changes, from the first commit to the last, without links and
    submodules.

    Files must exist before and after the commit. `suffixes` are ends of paths, such as ".py". With `renames`,
    git reads the contents of files, and fails if some are missing, as in a partial clone. `commits` are
    arguments of `git rev-list`; without them, HEAD's history is read along first parents, in which a merge
    counts as one commit. Over `MOST_FILES` in a commit are an `InputError`.
    """
    # Added and deleted files have no function on both sides. External diffs and textconv run programs.
    options = ["-r", "-m", "--raw", "-z", "--no-abbrev", "--no-ext-diff", "--no-textconv", "--diff-filter=MR"]
    options += ["-M", f"-l{_RENAMES}"] if renames else ["--no-renames"]
    paths = (f"*{suffix}" for suffix in suffixes)
    chosen = ("--first-parent", repository.head) if commits is None else commits
    listing = repository.git("rev-list", "--parents", "--reverse", *chosen)
    with listing as lines, repository.git("diff-tree", "--stdin", *options, "--", *paths) as git:
        # The first commit, whose files are all new, has no parent, and is left out.
        pairs = (words[:2] for line in lines.fields(b"\n", _LARGEST_LINE) if len(words := line.split()) > 1)
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
