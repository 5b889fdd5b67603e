"""Safe reading of files from untrusted git repositories, without a checkout.

The configuration of a repository can make git run commands. Therefore git runs in an empty repository
that this module makes, and reads only the objects (file contents, folders, commits) of the untrusted
repository. The module `git_refs` reads the refs (branches and tags) without git.
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from simllm.code.git_directory import RepositoryPaths, check_objects, read_start
from simllm.code.git_refs import HASH, LARGEST_REFS, packed_refs, resolve_ref, tag_refs
from simllm.errors import InputError

MOST_FILES = 1_000_000  # files in a revision; a few small tree objects can represent billions of files
_MOST_MEMORY = 4 << 30  # bytes that git may allocate, for the same reason
_LARGEST_TAG = 1 << 16  # bytes
_CHUNK = 1 << 20  # bytes that are read at once
_DATE = re.compile(rb"(?m)^(?:tagger|committer) .* (\d{1,18}) [-+]\d+$")


@dataclass(frozen=True)
class GitFile:
    """A file in a revision of a git repository.

    Attributes:
        path: The path in the repository.
        blob: The hash of the git object with the file's content.
        size: Size of the content in bytes; 0 if the object is missing.
    """

    path: str
    blob: str
    size: int


@contextmanager
def open_repository(location: RepositoryPaths) -> Iterator[Repository]:
    """Open a git repository for reading, in a `with` statement.

    Args:
        location: The paths of the repository's git folder and of its files.

    Yields:
        The open repository, once.

    Raises:
        InputError: The repository's objects cannot be read safely.
    """
    objects = location.common / "objects"
    check_objects(location.folder, objects)
    with tempfile.TemporaryDirectory(prefix="simllm-git-") as scratch:
        yield Repository(location, objects, Path(scratch))


class Repository:
    """A git repository that the function `open_repository` has opened for reading.

    All methods raise InputError if git fails.
    """

    def __init__(self, location: RepositoryPaths, objects: Path, scratch: Path) -> None:
        """Make an empty repository, in which git runs to read the objects of the untrusted repository.

        In the untrusted repository itself, git would obey the configuration, which can run commands.

        Args:
            location: The folders of the untrusted repository.
            objects: The folder with the git objects of the untrusted repository.
            scratch: An empty folder, in which the empty repository is made.
        """
        self.folder, self._location, self._scratch = location.folder, location, scratch
        self._packed = packed_refs(location.common)
        head = resolve_ref("HEAD", location, self._packed)
        names = [head, *self._packed.values()]
        sha256 = any(len(name) == 64 for name in names)
        (scratch / "refs").mkdir()
        (scratch / "HEAD").write_text("ref: refs/heads/none\n", encoding="ascii")
        # The oldest commits of a shallow clone, whose parents are missing.
        ends = filter(HASH.match, read_start(location.common / "shallow", LARGEST_REFS).splitlines())
        (scratch / "shallow").write_bytes(b"".join(name + b"\n" for name in ends))
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
        """Return the hashes of the git objects that the tags point to, newest first.

        Tags of objects without a date, such as files, are left out. If more than `limit` tags remain, only
        `limit` of them are returned, evenly spaced in the list of the tags sorted by date.
        """
        objects = [sha for _, sha in sorted(tag_refs(self._location, self._packed).items())]
        sizes = self._sizes(objects)
        read = [sha for sha in objects if sizes[sha] <= _LARGEST_TAG]
        dates = [_DATE.search(data or b"") for data in self.contents(read)]
        dated = [(int(date[1]), sha) for date, sha in zip(dates, read, strict=True) if date]
        every = [sha for _, sha in sorted(dated, key=lambda pair: -pair[0])]
        chosen = min(limit, len(every))
        return [every[i * len(every) // chosen] for i in range(chosen)]

    def files(self, revision: str) -> list[GitFile]:
        """List the regular files in a revision, without links and submodules.

        Args:
            revision: The hash of a commit or tag.
        """
        entries: list[GitFile] = []
        with self.git("ls-tree", "-r", "-l", "-z", "--full-tree", revision) as git:
            assert git.stdout
            rest = b""
            while data := git.stdout.read(_CHUNK):
                *lines, rest = (rest + data).split(b"\0")
                entries += filter(None, map(_entry, lines))
                if len(entries) > MOST_FILES:
                    raise InputError(f"{self.folder}: a revision of more than {MOST_FILES:,} files")
        return entries

    def contents(self, objects: Iterable[str], largest: int | None = None) -> Iterator[bytes | None]:
        """Yield the content of each requested git object.

        Args:
            objects: The hashes of the objects. The iterable is read step by step: the next hash is taken only
                after the content of the previous object has been yielded.
            largest: The size in bytes above which an object is skipped; None for no limit.

        Yields:
            The content of each object in order; None if the object is missing or larger than `largest`.
        """
        with self.git("cat-file", "--batch") as git:
            assert git.stdout
            for header in self._headers(git, objects):
                if len(header) < 3:
                    yield None
                    continue
                size = int(header[2])
                if largest is not None and size > largest:
                    for skipped in range(0, size + 1, _CHUNK):
                        git.stdout.read(min(_CHUNK, size + 1 - skipped))
                    yield None
                    continue
                data = git.stdout.read(size + 1)
                if len(data) <= size:
                    raise InputError(f"{self.folder}: git ended while it was read")
                yield data[:-1]

    def _sizes(self, objects: list[str]) -> dict[str, int]:
        """Return the sizes of commits and tags in bytes, so that the caller can skip large ones.

        Args:
            objects: The hashes of git objects of any type.

        Returns:
            A dict from the hash of each object to its size. Missing objects, and objects that are neither
            commits nor tags, get the size 2**62, so that the caller skips them, too.
        """
        with self.git("cat-file", "--batch-check") as git:
            headers = list(self._headers(git, objects))
        return {
            name: int(header[2]) if header[1] in (b"commit", b"tag") else 1 << 62
            for name, header in zip(objects, headers, strict=True)
        }

    def _headers(self, git: subprocess.Popen[bytes], objects: Iterable[str]) -> Iterator[list[bytes]]:
        """Request objects from a running `git cat-file`, and yield each answer's header, split into words.

        Git may print the object's content after the header. The caller must then read the content before
        it takes the next header.

        Args:
            git: The running process.
            objects: The hashes of the objects.

        Yields:
            For each object, a list of its hash, type and size. For a missing object, a list of its hash and
            the word `missing`.
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
    def git(self, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
        """Start git for a `with` block, and wait at the end of the block until git has ended.

        Args:
            *arguments: The arguments of git.

        Yields:
            The running process, once.

        Raises:
            InputError: git is not installed, or it fails. The error has the first line of git's message.
        """
        command = ["git", f"--git-dir={self._scratch}", *arguments]
        pipe, broken = subprocess.PIPE, False
        with tempfile.TemporaryFile(dir=self._scratch) as errors:
            try:
                with subprocess.Popen(
                    command, env=self._environment, cwd=self._scratch, stdin=pipe, stdout=pipe, stderr=errors
                ) as git:
                    try:
                        resource.prlimit(git.pid, resource.RLIMIT_DATA, (_MOST_MEMORY, _MOST_MEMORY))
                        yield git
                    except BaseException:
                        git.kill()
                        raise
            except FileNotFoundError:
                raise InputError(f"{self.folder}: reading git repositories needs git") from None
            except BrokenPipeError:
                broken = True
            if broken or git.returncode:
                errors.seek(0)
                lines = errors.read().decode("utf-8", "replace").strip().splitlines()
                raise InputError(f"{self.folder}: {lines[0] if lines else 'git failed'}")


def _entry(line: bytes) -> GitFile | None:
    """Parse a line from `git ls-tree`; return None if the line does not describe a regular file."""
    facts, _, path = line.partition(b"\t")
    mode, _, blob, size = facts.split()
    length = int(size) if size.isdigit() else 0  # 0 for missing objects
    return (
        GitFile(path.decode("utf-8", "replace"), blob.decode(), length) if mode.startswith(b"100") else None
    )
