"""Safe reading of files from untrusted git repositories, without a checkout.

The configuration of a repository can make git run commands. Therefore git runs in an empty repository
that this module makes, and reads only the objects (file contents, folders, commits) of the untrusted
repository. This module itself reads the refs (branches and tags).
"""

from __future__ import annotations

import os
import re
import stat
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from simllm.errors import InputError
from simllm.io.files import real

MOST_FILES = 1_000_000  # files in a revision; a few small tree objects can represent billions of files
_LARGEST_REFS = 1 << 26  # bytes
_LARGEST_TAG = 1 << 16  # bytes
_NAME = re.compile(rb"(?:[0-9a-f]{40}|[0-9a-f]{64})\Z")
_DATE = re.compile(rb"(?m)^(?:tagger|committer) .* (\d{1,18}) [-+]\d+$")


@dataclass(frozen=True)
class GitFile:
    """A file in a revision of a git repository.

    Attributes:
        path: The path in the repository.
        blob: The hash of the git object with the file's content.
        size: Size in bytes; 0 if the object is missing.
    """

    path: str
    blob: str
    size: int


@dataclass(frozen=True)
class RepositoryPaths:
    """The folders of a git repository.

    Attributes:
        folder: The work tree, or the bare repository.
        own: The folder with HEAD.
        common: The folder with refs and objects. It differs from `own` in a linked work tree.
    """

    folder: Path
    own: Path
    common: Path


def find_repository(folder: Path, root: Path) -> RepositoryPaths | None:
    """Find the git repository of a folder, without looking in the folders above.

    Args:
        folder: A folder, which may be a work tree or a bare repository.
        root: The folder that the user named; git's folders must be inside it.

    Returns:
        The folders of the repository; None if `folder` is not a repository.

    Raises:
        InputError: A folder of the repository is outside of `root`.
    """
    own = _git_folder(folder)
    if not own:
        return None
    own = real(own)
    elsewhere = _read(own / "commondir", 4096).strip()
    common = real(_path(own, elsewhere)) if elsewhere else own
    for path in (own, common, real(common / "objects")):
        if not path.is_relative_to(real(root)):
            raise InputError(f"{folder}: its git folder {path} is outside of {root}")
    return RepositoryPaths(folder, own, common)


def _git_folder(folder: Path) -> Path | None:
    """Return the folder with HEAD of a work tree or bare repository; None if `folder` is neither."""
    inner = folder / ".git"
    if os.path.isdir(inner):  # noqa: PTH112 (Path.is_dir raises for names that are too long)
        return inner
    if pointer := _read(inner, 4096).strip():
        name = pointer.removeprefix(b"gitdir:").strip()
        return _path(folder, name) if pointer.startswith(b"gitdir:") else None
    head, *folders = (folder / name for name in ("HEAD", "objects", "refs"))
    return folder if os.path.isfile(head) and all(map(os.path.isdir, folders)) else None  # noqa: PTH113


def _path(folder: Path, name: bytes) -> Path:
    """Return the path `folder`/`name`; `name` ends at its first zero byte."""
    return folder / os.fsdecode(name.partition(b"\0")[0])


@contextmanager
def open_repository(location: RepositoryPaths) -> Iterator[Repository]:
    """Open a git repository for reading, in a `with` statement.

    Raises:
        InputError: The repository's objects cannot be read safely.
    """
    objects = location.common / "objects"
    _check_objects(location.folder, objects)
    with tempfile.TemporaryDirectory(prefix="simllm-git-") as scratch:
        yield Repository(location, objects, Path(scratch))


class Repository:
    """A git repository that is open for reading; all methods raise InputError if git fails."""

    def __init__(self, location: RepositoryPaths, objects: Path, scratch: Path) -> None:
        """Make the empty repository in which git runs.

        Args:
            location: The repository to read.
            objects: The folder with the objects of that repository.
            scratch: An empty folder for the empty repository.
        """
        self.folder, self._location, self._scratch = location.folder, location, scratch
        self._packed = _packed_refs(location.common)
        head = self._resolve("HEAD")
        names = [head, *self._packed.values()]
        sha256 = any(len(name) == 64 for name in names)
        (scratch / "refs").mkdir()
        (scratch / "HEAD").write_text("ref: refs/heads/none\n", encoding="ascii")
        (scratch / "config").write_text(
            f"[core]\nrepositoryformatversion = {int(sha256)}\nbare = true\n"
            + "[extensions]\nobjectformat = sha256\n" * sha256,
            encoding="ascii",
        )
        self._head = head
        outside = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
        self._environment = outside | {
            "GIT_OBJECT_DIRECTORY": str(objects),
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TERMINAL_PROMPT": "0",
            "HOME": str(scratch),  # has no configuration file
            "XDG_CONFIG_HOME": str(scratch),
            "LC_ALL": "C",
        }

    @property
    def head(self) -> str:
        """The hash of the commit that HEAD points to."""
        if not self._head:
            raise InputError(f"{self.folder}: HEAD points to no commit")
        return self._head

    def tags(self, limit: int) -> list[str]:
        """Return the hashes of at most `limit` tagged revisions, spread over all tags, newest first."""
        tags = {name: sha for name, sha in self._packed.items() if name.startswith("refs/tags/")}
        for file in _files(self._location.common / "refs" / "tags"):
            name = file.relative_to(self._location.common).as_posix()
            if sha := self._resolve(name):
                tags[name] = sha
        objects = [sha for _, sha in sorted(tags.items())]
        sizes = self._sizes(objects)
        read = [sha for sha in objects if sizes[sha] <= _LARGEST_TAG]
        dates = [_DATE.search(data or b"") for data in self.contents(read)]
        dated = [(int(date[1]), sha) for date, sha in zip(dates, read, strict=True) if date]
        every = [sha for _, sha in sorted(dated, key=lambda pair: -pair[0])]
        chosen = min(limit, len(every))
        return [every[i * len(every) // chosen] for i in range(chosen)]

    def files(self, revision: str) -> list[GitFile]:
        """List the ordinary files of a revision (hash of a commit or tag), without links and submodules."""
        entries: list[GitFile] = []
        with self._git("ls-tree", "-r", "-l", "-z", "--full-tree", revision) as git:
            assert git.stdout
            rest = b""
            while data := git.stdout.read(1 << 20):
                *lines, rest = (rest + data).split(b"\0")
                entries += filter(None, map(_entry, lines))
                if len(entries) > MOST_FILES:
                    raise InputError(f"{self.folder}: a revision of more than {MOST_FILES:,} files")
        return entries

    def contents(self, objects: Iterable[str]) -> Iterator[bytes | None]:
        """Yield the content of each git object, given by its hash; None if the object is missing."""
        with self._git("cat-file", "--batch") as git:
            assert git.stdout
            for header in self._headers(git, objects):
                if len(header) < 3:
                    yield None
                    continue
                data = git.stdout.read(int(header[2]) + 1)
                if len(data) <= int(header[2]):
                    raise InputError(f"{self.folder}: git ended while it was read")
                yield data[:-1]

    def _sizes(self, objects: list[str]) -> dict[str, int]:
        """Map each object's hash to its size in bytes; 2**62 if it is neither a commit nor a tag."""
        with self._git("cat-file", "--batch-check") as git:
            headers = list(self._headers(git, objects))
        return {
            name: int(header[2]) if header[1] in (b"commit", b"tag") else 1 << 62
            for name, header in zip(objects, headers, strict=True)
        }

    def _headers(self, git: subprocess.Popen[bytes], objects: Iterable[str]) -> Iterator[list[bytes]]:
        """Ask a running `git cat-file` for objects one by one, and yield the fields of its answer to each.

        The fields are name, type and size of an object, or its name and `missing`.

        Args:
            git: The running process.
            objects: The hashes of the objects.
        """
        assert git.stdin
        assert git.stdout
        for name in objects:
            git.stdin.write(name.encode() + b"\n")
            git.stdin.flush()
            header = git.stdout.readline().split()
            if not header:
                raise InputError(f"{self.folder}: git ended while it was read")
            yield header

    @contextmanager
    def _git(self, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
        """Run git with arguments in a `with` statement; raise InputError with git's message if it fails."""
        errors = self._scratch / "errors"
        command = ["git", f"--git-dir={self._scratch}", *arguments]
        pipe, broken = subprocess.PIPE, False
        try:
            with (
                errors.open("wb") as stderr,
                subprocess.Popen(
                    command, env=self._environment, cwd=self._scratch, stdin=pipe, stdout=pipe, stderr=stderr
                ) as git,
            ):
                try:
                    yield git
                except BaseException:
                    git.kill()
                    raise
        except FileNotFoundError:
            raise InputError(f"{self.folder}: reading git repositories needs git") from None
        except BrokenPipeError:
            broken = True
        if broken or git.returncode:
            lines = errors.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            raise InputError(f"{self.folder}: {lines[0] if lines else 'git failed'}")

    def _resolve(self, name: str) -> str:
        """Return the hash that a ref (such as HEAD or refs/tags/v1) points to; "" if there is no such ref."""
        folder = self._location.own if name == "HEAD" else self._location.common
        for _ in range(5):  # refs that point to refs
            data = _read(folder / name, 4096).strip()
            if _NAME.match(data):
                return data.decode()
            if not data.startswith(b"ref: refs/"):
                return self._packed.get(name, "")
            name = os.fsdecode(data.removeprefix(b"ref: "))
            folder = self._location.common
            if "\0" in name or ".." in Path(name).parts:
                break
        return ""


def _entry(line: bytes) -> GitFile | None:
    """Parse a line from `git ls-tree`; return None if it is not an ordinary file."""
    facts, _, path = line.partition(b"\t")
    mode, _, blob, size = facts.split()
    length = int(size) if size.isdigit() else 0  # 0 for missing objects
    return (
        GitFile(path.decode("utf-8", "replace"), blob.decode(), length) if mode.startswith(b"100") else None
    )


def _packed_refs(common: Path) -> dict[str, str]:
    """Read the file `packed-refs` in a folder; return the hash of each ref by the ref's name."""
    rows = (line.partition(b" ") for line in _read(common / "packed-refs", _LARGEST_REFS).splitlines())
    return {os.fsdecode(name): sha.decode() for sha, _, name in rows if _NAME.match(sha)}


def _check_objects(folder: Path, objects: Path) -> None:
    """Check that git can read a repository's objects without leaving their folder or waiting for a pipe.

    Args:
        folder: The folder of the repository, for error messages.
        objects: The folder of the objects.

    Raises:
        InputError: The folder has links, pipes or devices, or refers to objects in other folders.
    """
    if _read(objects / "info" / "alternates", 1):
        raise InputError(f"{folder}: has objects in other repositories (objects/info/alternates)")
    for file in _files(objects, special=True):
        raise InputError(f"{folder}: {file} is a link or no file")


def _files(top: Path, special: bool = False) -> Iterator[Path]:
    """Yield the regular files below a folder; if `special`, yield links, pipes and devices instead."""
    folders = [top]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(Path(entry.path))
                    elif entry.is_file(follow_symlinks=False) is not special:
                        yield Path(entry.path)
        except OSError:
            continue  # git reports missing files itself


def _read(file: Path, limit: int) -> bytes:
    """Return the first `limit` bytes of a file; b"" if it is not a regular file or cannot be read."""
    try:
        if not stat.S_ISREG(os.stat(file).st_mode):  # noqa: PTH116
            return b""
        with file.open("rb") as data:
            return data.read(limit)
    except (OSError, ValueError):
        return b""
