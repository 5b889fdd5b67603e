"""Output files: checks before long work, a lock while a command runs, and atomic writing."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import stat
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path

from simllm.errors import InputError
from simllm.io.read_lines import is_stdin
from simllm.io.real_path import real

_LONGEST_STEM = 200  # bytes of a name that a temporary name repeats; most file systems allow 255 in all


def check_output(file: Path | None, inputs: Iterable[Path], overwrite: bool) -> None:
    """Check that a command may write its output file, before the command does long work.

    Args:
        file: The output file; None means standard output, which is always allowed.
        inputs: The files and folders that the command reads.
        overwrite: Whether the output may replace an existing file that has content. An empty file, a pipe or
            a device is always allowed.

    Raises:
        InputError: The output file is an input or an existing file in an input folder, it is a folder, it
            exists and may not be replaced, or its folder does not exist or cannot be written.
    """
    if file is None:
        return
    check_unread(file, inputs)
    try:
        status = file.stat()
    except FileNotFoundError:
        if not real(file).parent.is_dir():
            raise InputError(f"{file}: cannot be written (no such folder)") from None
        check_folder_of(file)
        return
    except OSError as error:
        raise InputError(f"{file}: cannot be written ({error.strerror})") from None
    if stat.S_ISDIR(status.st_mode):
        raise InputError(f"{file}: cannot be written (it is a folder)")
    if stat.S_ISREG(status.st_mode):
        if status.st_size and not overwrite:
            raise InputError(f"{file}: exists already; --overwrite replaces it")
        check_folder_of(file)


def check_unread(file: Path, inputs: Iterable[Path]) -> None:
    """Check that an output file replaces nothing that the command reads.

    Files are compared by identity, so hard links, symbolic links and another spelling on a file system that
    ignores case count, too.

    Raises:
        InputError: The file is one of the inputs, or an existing file in an input folder.
    """
    target = real(file)
    for path in inputs:
        if is_stdin(path):
            continue
        source = real(path)
        is_in_folder = (
            stat.S_ISREG(mode_of(target))
            and stat.S_ISDIR(mode_of(source))
            and (is_above(source, target) or _has_link_to(source, target))
        )
        if source == target or _is_same(source, target) or is_in_folder:
            raise InputError(f"{file}: would overwrite what is read")


def mode_of(path: Path) -> int:
    """Return the type and permissions of what is at a path; 0 if nothing can be there."""
    try:
        return path.stat().st_mode
    except (OSError, ValueError):  # missing, too long, or with a NUL character
        return 0


def _is_same(a: Path, b: Path) -> bool:
    """Return whether two paths lead to the same existing regular file or folder."""
    kinds = stat.S_IFMT(mode_of(a)), stat.S_IFMT(mode_of(b))
    # Not a device such as /dev/tty, which can be read and written at once.
    return kinds[0] in (stat.S_IFREG, stat.S_IFDIR) and kinds[0] == kinds[1] and a.samefile(b)


def is_above(folder: Path, path: Path) -> bool:
    """Return whether a path is a folder itself or lies inside it; both paths are real."""
    return any(above == folder or _is_same(above, folder) for above in (path, *path.parents))


def _has_link_to(folder: Path, file: Path) -> bool:
    """Return whether a folder or its subfolders have a hard link to a file."""
    if file.stat().st_nlink == 1:
        return False
    return any(_is_same(Path(here, name), file) for here, _, names in os.walk(folder) for name in names)


def check_folder_of(file: Path) -> None:
    """Check that the folder of an output file can be written: temporary files are made there."""
    if not os.access(real(file).parent, os.W_OK | os.X_OK):
        raise InputError(f"{file}: cannot be written (no permission for its folder)")


def check_different(inputs: Iterable[Path]) -> None:
    """Check that no input file or folder of a command is named twice, even by two different paths.

    Raises:
        InputError: Two paths lead to the same file or folder, after following all symbolic links.
    """
    known = set[Path]()
    for path in inputs:
        if real(path) in known:
            raise InputError(f"{path}: is named twice")
        known.add(real(path))


def write(file: Path, content: str | bytes | Iterable[str]) -> None:
    """Write a file atomically: after a crash, the file has either its old or its new content.

    A pipe or a device, such as `/dev/stdout`, is written directly.

    Args:
        file: The file. If it is a symbolic link, the file to which it points is replaced.
        content: The content, or an iterable of its parts. Characters that UTF-8 cannot encode (lone
            surrogates) are escaped.

    Raises:
        InputError: The file cannot be written.
        BrokenPipeError: The file is a pipe whose reader has ended.
    """
    pieces = [content] if isinstance(content, str | bytes) else content
    encoded = (p if isinstance(p, bytes) else p.encode("utf-8", "backslashreplace") for p in pieces)
    try:
        if file.exists() and not file.is_file():
            with file.open("wb") as target:
                target.writelines(encoded)
            return
        file = real(file)
        with temporary(file) as partial:
            with partial.open("wb") as target:
                target.writelines(encoded)
            sync(partial)
            partial.replace(file)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise InputError(f"{file}: cannot be written ({error.strerror})") from None


@contextlib.contextmanager
def temporary(file: Path) -> Iterator[Path]:
    """Make an empty temporary file beside `file` for a `with` block, and remove it after the block.

    If `file` exists, the temporary file gets the permissions of `file`. The block may rename the temporary
    file; then the file is not removed.

    Yields:
        The path of the temporary file.
    """
    partial = hidden_path(file, f".{uuid.uuid4().hex[:8]}.partial")
    partial.touch(exist_ok=False)
    try:
        if file.exists():
            partial.chmod(file.stat().st_mode & 0o777)
        yield partial
    finally:
        partial.unlink(missing_ok=True)


def hidden_path(path: Path, suffix: str) -> Path:
    """Return the path `.NAME` + `suffix` beside a file or folder NAME; a long NAME is cut and hashed."""
    name = os.fsencode(path.name)
    if len(name) > _LONGEST_STEM:
        start = name[: _LONGEST_STEM - 13].decode("utf-8", "ignore").encode()
        name = start + b"~" + hashlib.sha256(name).hexdigest()[:12].encode()
    return path.with_name(f".{os.fsdecode(name)}{suffix}")


def sync(path: Path) -> None:
    """Wait until the content of a file or folder is on the disk (fsync)."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sha256_of(file: Path) -> str:
    """Compute the SHA-256 of a file, in hex digits."""
    with file.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()


@contextlib.contextmanager
def locked(path: Path, suffix: str = ".lock") -> Iterator[None]:
    """Hold a lock on a file or folder during a `with` block, so that no other process writes there.

    Only processes that call this function respect the lock. If this process is killed, it is released.

    Args:
        path: The file or folder; it need not exist.
        suffix: The lock is a file `.NAME` + `suffix` beside `path`.

    Raises:
        InputError: Another process has the lock, or the lock file cannot be written.
    """
    lock = hidden_path(path, suffix)
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        while True:
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_open(lock, descriptor):
                    break
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)  # the previous owner has just removed the lock file
    except BlockingIOError:
        raise InputError(f"{path}: another process is writing there") from None
    except OSError as error:
        raise InputError(f"{lock}: cannot be locked ({error.strerror})") from None
    try:
        yield
    finally:
        if os.fstat(descriptor).st_size == 0:  # our lock files are empty; another file is not ours
            lock.unlink(missing_ok=True)
        os.close(descriptor)


def _is_open(file: Path, descriptor: int) -> bool:
    """Return whether an opened file is still at its path: it was neither removed nor replaced."""
    try:
        return os.path.samestat(file.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
