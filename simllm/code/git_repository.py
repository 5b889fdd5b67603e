"""Objects and history of an untrusted git repository, read by git under limits and without its settings."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from simllm.code.git_folders import (
    HASH,
    LARGEST_REFS,
    RepositoryPaths,
    check_objects,
    packed_refs,
    read_start,
    resolve_ref,
    tag_refs,
)
from simllm.errors import InputError
from simllm.io.packages import require_linux
from simllm.io.tables import on_one_line, printable

MOST_FILES = 1_000_000  # files in a revision; a few small tree objects can represent billions of files
MOST_SECONDS = 3600.0  # that git may take to read a repository
_MOST_SILENCE = 60.0  # seconds without a byte of an answer; git can walk billions of files without a word
_MOST_MEMORY = 2 << 30  # bytes that git may allocate
_MOST_MESSAGES = 1 << 20  # bytes of error messages
_LARGEST_TAG = 1 << 16  # bytes
_LARGEST_COMMIT = 1 << 20  # bytes
_CHUNK = 1 << 16  # bytes that are read at once
_SKIPPED = 1 << 22  # bytes; to skip more, git is started anew
_DATE = re.compile(rb"(?m)^(?:tagger|committer) .* (\d{1,18}) [-+]\d+$")
_EMPTY = Path(__file__).with_name("empty_git")
# Files in the folder of objects can change the history or its speed, and settings can run commands. The
# system's and the user's settings are not read at all; this says it once more.
_OPTIONS = (
    "core.commitGraph=false", "core.multiPackIndex=false", "core.fsmonitor=false", "core.hooksPath=/dev/null",
    "core.attributesFile=/dev/null", "core.alternateRefsCommand=false", "core.bigFileThreshold=32m",
    "protocol.allow=never", "credential.helper=", "gc.auto=0", "maintenance.auto=false",
)  # fmt: skip
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class GitFile:
    """A file in a revision of a git repository.

    Attributes:
        blob: The hash of the git object with the file's content.
        size: Size of the content in bytes; 0 if the object is missing.
    """

    path: str
    blob: str
    size: int


def open_repository(location: RepositoryPaths, seconds: float = MOST_SECONDS) -> Repository:
    """Open a repository whose objects can be read safely; git may take `seconds` in all."""
    objects = location.common / "objects"
    check_objects(location.folder, objects)
    require_linux("reading git repositories")
    return Repository(location, objects, seconds)


class RepositoryLimitError(InputError):
    """Error for a repository that takes more time than it may, or has too many files."""


@dataclass
class _Time:
    """The seconds that git may still take to read a repository, over all its processes."""

    left: float


class Git:
    """A running git process with unbuffered pipes, whose answers must come in time.

    `folder` is for error messages; `limit`, the time that git may still take, is updated.
    """

    def __init__(self, process: subprocess.Popen[bytes], folder: Path, limit: _Time) -> None:
        assert process.stdin
        assert process.stdout
        self._process, self._input, self._output = process, process.stdin, process.stdout
        self.is_stopped = False
        self._folder, self._time, self._data = folder, limit, bytearray()
        self._poll = select.poll()
        self._poll.register(self._output, select.POLLIN)

    def write(self, data: bytes) -> None:
        """Write a question. A question and its answers so far must fit in a pipe (64 KiB)."""
        self._input.write(data)

    def starts_with(self, data: bytes) -> bool:
        """Return whether the unread output starts with some bytes, which are then taken."""
        while len(self._data) < len(data) and self._fill():
            pass
        if not self._data.startswith(data):
            return False
        del self._data[: len(data)]
        return True

    def read(self, size: int) -> bytes:
        """Read exactly `size` bytes."""
        while len(self._data) < size:
            if not self._fill():
                raise self.ended()
        return self._take(size)

    def skip(self, size: int) -> None:
        """Skip `size` bytes of output."""
        while size > 0:
            size -= len(self.read(min(size, _CHUNK)))

    def fields(self, end: bytes, largest: int) -> Iterator[bytes]:
        """Yield the parts of the output that end with a byte, without it, up to the end of the output."""
        while (field := self.field(end, largest)) is not None:
            yield field

    def field(self, end: bytes, largest: int) -> bytes | None:
        """Read up to the next byte `end`; return None at the end of the output."""
        searched = 0
        while (length := self._data.find(end, searched)) < 0:
            # The next search begins here, so that a long field is not searched again with each piece.
            searched = len(self._data)
            if searched > largest:
                raise InputError(f"{self._folder}: a path of more than {largest:,} bytes")
            if not self._fill():
                if self._data:
                    raise self.ended()
                return None
        return self._take(length + 1)[:-1]

    def stop(self) -> None:
        """End the process; its further output is not needed."""
        self.is_stopped = True
        self._process.kill()

    def end(self) -> None:
        """Wait until the process ends, after all its questions."""
        if not self.is_stopped:
            while self._fill():
                self._data.clear()

    def _take(self, size: int) -> bytes:
        data = bytes(self._data[:size])
        del self._data[:size]
        return data

    def _fill(self) -> bool:
        begun = time.monotonic()
        is_there = self._poll.poll(1000 * max(0.0, min(self._time.left, _MOST_SILENCE)))
        # Only the wait for git counts, not the work of this process with its answers.
        self._time.left -= time.monotonic() - begun
        if self._time.left <= 0:
            raise RepositoryLimitError(f"{self._folder}: git takes too long to read it")
        if not is_there:
            raise RepositoryLimitError(f"{self._folder}: git gave no answer in {_MOST_SILENCE:g} seconds")
        data = os.read(self._output.fileno(), _CHUNK)
        self._data += data
        return bool(data)

    def ended(self) -> BrokenPipeError:
        """Return the error for an output that ends too early; `Repository.git` adds git's message."""
        return BrokenPipeError()


class Repository:
    """A git repository that `open_repository` has opened.

    All methods raise InputError if git fails, or if reading takes too long.
    """

    def __init__(self, location: RepositoryPaths, objects: Path, seconds: float) -> None:
        """Prepare the settings with which git reads the objects of the untrusted repository."""
        self.folder, self._location = location.folder, location
        self._seconds, self._time = seconds, _Time(seconds)
        self._packed = packed_refs(location.common)
        self._head = resolve_ref("HEAD", location, self._packed)
        # Git must be told the kind of hashes by the repository in which it runs.
        is_sha256 = any(len(name) == 64 for name in (self._head, *self._packed.values()))
        self._git_folder = _EMPTY / ("sha256" if is_sha256 else "sha1")
        # The oldest commits of a shallow clone, whose parents are missing.
        ends = filter(HASH.match, read_start(location.common / "shallow", LARGEST_REFS).splitlines())
        self._shallow = b"".join(name + b"\n" for name in ends)
        # Settings of the environment, such as GIT_DIR, would lead git elsewhere.
        outside = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
        nowhere = str(_EMPTY)  # has no configuration file
        self._environment = outside | {
            "GIT_OBJECT_DIRECTORY": str(objects.absolute()),
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_PAGER": "cat",
            "GIT_ASKPASS": "false",
            "GIT_SSH_COMMAND": "false",
            "HOME": nowhere,
            "XDG_CONFIG_HOME": nowhere,
            "LC_ALL": "C",
        }

    @property
    def is_shallow(self) -> bool:
        """Whether the repository is a shallow clone: its history is cut off."""
        return bool(self._shallow)

    @property
    def head(self) -> str:
        """The hash of the commit that HEAD points to."""
        if not self._head:
            raise InputError(f"{self.folder}: HEAD points to no commit")
        return self._head

    @property
    def has_commits(self) -> bool:
        """True if HEAD points to a commit; in a new repository it does not."""
        return bool(self._head)

    def ref(self, name: str) -> str:
        """Return the hash that a ref, such as "refs/heads/main", points to; "" if there is no such ref."""
        return resolve_ref(name, self._location, self._packed)

    def tags(self, limit: int) -> list[str]:
        """Return the hashes of the objects that the tags point to, newest first, without those without date.

        Of more than `limit` tags, `limit` are returned, evenly spaced in the list sorted by date.
        """
        objects = [sha for _, sha in sorted(tag_refs(self._location, self._packed).items())]
        sizes = self._sizes(objects)
        # An annotated tag is small; a huge object under a tag would fill the memory.
        read = [sha for sha in objects if sizes[sha] <= _LARGEST_TAG]
        dates = [_DATE.search(data or b"") for data in self.contents(read)]
        dated = [(int(date[1]), sha) for date, sha in zip(dates, read, strict=True) if date]
        every = [sha for _, sha in sorted(dated, key=lambda pair: -pair[0])]
        chosen = min(limit, len(every))
        return [every[i * len(every) // chosen] for i in range(chosen)]

    def date(self, commit: str) -> int | None:
        """Return when a commit entered the history, in seconds since 1970; None if it does not say."""
        [data] = self.contents([commit], _LARGEST_COMMIT)
        found = _DATE.search(data or b"")
        return int(found[1]) if found else None

    def origin(self, revision: str, path: str, line: int) -> str | None:
        """Return the commit that wrote a line (from 1) of a file in a revision, as `git blame` finds it.

        Changes of white space, moves within the file, and renamed files do not count. None if git cannot
        tell, or if the history of a shallow clone ends there.
        """
        options = ["--porcelain", "-w", "-M", "--root", f"-L{line},{line}"]
        try:
            with self.git("blame", *options, revision, "--", path) as git:
                first = (git.field(b"\n", _CHUNK) or b"").split()
                # The rest repeats the line, which may be long.
                git.stop()
        except InputError:  # such as a missing object, or a file that takes too long
            return None
        is_known = first and HASH.match(first[0]) and first[0] not in self._shallow.splitlines()
        return first[0].decode() if is_known else None

    def files(self, revision: str) -> list[GitFile]:
        """List the regular files in a commit or tag (a hash), without links and submodules."""
        entries: list[GitFile] = []
        with self.git("ls-tree", "-r", "-l", "-z", "--full-tree", revision) as git:
            for number, line in enumerate(git.fields(b"\0", _CHUNK), 1):
                if number > MOST_FILES:
                    raise RepositoryLimitError(f"{self.folder}: a revision of more than {MOST_FILES:,} files")
                if entry := _entry(line):
                    entries.append(entry)
        return entries

    def contents(self, objects: Iterable[str], largest: int | None = None) -> Iterator[bytes | None]:
        """Yield the content of each object; None if it is missing or has over `largest` bytes.

        The next hash is taken only after the content of the previous object has been yielded.
        """
        waiting = iter(objects)
        is_over = False
        while not is_over:
            with self.git("cat-file", "--batch") as git:
                for header in self._headers(git, waiting):
                    # Missing objects have the header HASH missing.
                    size = int(header[2]) if len(header) >= 3 else -1
                    if size < 0 or (largest is not None and size > largest):
                        yield None
                        if size > _SKIPPED:  # a few KB can represent many GB of zeros
                            git.stop()
                            break
                        git.skip(size + 1)
                    else:
                        # git writes a line feed after each content.
                        yield git.read(size + 1)[:-1]
                else:
                    is_over = True

    def _sizes(self, objects: list[str]) -> dict[str, int]:
        """Return the sizes of commits and tags in bytes; 2**62 for others and missing ones, to skip them."""
        with self.git("cat-file", "--batch-check") as git:
            headers = list(self._headers(git, objects))
        return {
            name: int(header[2]) if header[1] in (b"commit", b"tag") else 1 << 62
            for name, header in zip(objects, headers, strict=True)
        }

    def _headers(self, git: Git, objects: Iterable[str]) -> Iterator[list[bytes]]:
        """Request objects from a running `git cat-file`, and yield each answer's header, split into words.

        A header has hash, type and size, or the hash and `missing`. The caller must read the content after a
        header, if git prints it, before it takes the next header.
        """
        for name in objects:
            git.write(name.encode() + b"\n")
            header = git.field(b"\n", _CHUNK)
            if header is None:
                raise git.ended()
            yield header.split()

    @contextlib.contextmanager
    def git(self, *arguments: str) -> Iterator[Git]:
        """Start git with some arguments for a `with` block, and wait at the end of the block for its end.

        If git is missing or fails, there is an `InputError` with the first line of git's message.
        """
        options = [word for option in _OPTIONS for word in ("-c", option)]
        command = ["git", f"--git-dir={self._git_folder}", *options, "--no-pager", *arguments]
        with contextlib.ExitStack() as held:
            # A file, because a full pipe of messages would block git.
            errors = held.enter_context(tempfile.TemporaryFile())
            environment = self._environment
            kept: tuple[int, ...] = ()
            if self._shallow:
                listed = held.enter_context(tempfile.TemporaryFile())
                listed.write(self._shallow)
                listed.flush()
                kept = (listed.fileno(),)
                environment = environment | {"GIT_SHALLOW_FILE": f"/proc/self/fd/{listed.fileno()}"}
            pipe, is_broken = subprocess.PIPE, False
            try:
                process = subprocess.Popen(
                    command, env=environment, cwd=_EMPTY, stdin=pipe, stdout=pipe, stderr=errors, bufsize=0,
                    pass_fds=kept, preexec_fn=_limits(self._seconds),
                )  # fmt: skip
            except FileNotFoundError:
                raise InputError(f"{self.folder}: reading git repositories needs git") from None
            git = Git(process, self.folder, self._time)
            try:
                with process:
                    try:
                        yield git
                        assert process.stdin
                        process.stdin.close()
                        git.end()
                    except BaseException:
                        process.kill()
                        raise
            except BrokenPipeError:
                is_broken = True
            if git.is_stopped:
                return
            if is_broken or process.returncode:
                errors.seek(0)
                lines = errors.read(_CHUNK).decode("utf-8", "replace").strip().splitlines()
                message = on_one_line(lines[0]) if lines else "git ended while it was read"
                raise InputError(f"{printable(self.folder)}: {message}")


def _limits(seconds: float) -> Callable[[], None]:
    """Return the function that limits git before it starts, and lets it end with this process."""
    import resource  # late, because Windows lacks it

    parent, prctl = os.getpid(), ctypes.CDLL(None).prctl
    limits = {
        resource.RLIMIT_DATA: _MOST_MEMORY,
        resource.RLIMIT_CPU: int(min(seconds, 1 << 30)) + 1,
        resource.RLIMIT_FSIZE: _MOST_MESSAGES,  # git writes nothing but messages
        resource.RLIMIT_CORE: 0,
    }

    def limit() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it ended before
            os._exit(1)
        for kind, value in limits.items():
            hard = resource.getrlimit(kind)[1]
            own = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(kind, (own, own))

    return limit


def _entry(line: bytes) -> GitFile | None:
    """Parse a line from `git ls-tree`; return None if the line does not describe a regular file."""
    facts, _, path = line.partition(b"\t")
    mode, _, blob, size = facts.split()
    length = int(size) if size.isdigit() else 0  # 0 for missing objects
    return (
        GitFile(path.decode("utf-8", "replace"), blob.decode(), length) if mode.startswith(b"100") else None
    )
