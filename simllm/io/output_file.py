"""Output files: checks before a command writes them, atomic writing, and locks."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path

from simllm.errors import InputError
from simllm.io.reading import is_stdin


def real(path: Path) -> Path:
    """Return the real path of a file; links that form a loop stay in the path, and no error is raised."""
    return Path(os.path.realpath(path))


_LONGEST_STEM = 200  # bytes of a name that a temporary name repeats; most file systems allow 255 in all


def check_output(file: Path | None, overwrite: bool, inputs: Iterable[Path] = ()) -> None:
    """Check that a command may write its output file, before the command does long work.

    An existing file needs `overwrite`, except if the file is empty, a pipe or a device. No input, nor a file
    in an input folder, may be replaced.
    """
    if file is None:
        return
    check_unread(file, inputs)
    try:
        status = file.stat()
    except FileNotFoundError:
        # The output may be a link to a missing file, whose own folder counts.
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
    """
    target = real(file)
    for path in inputs:
        # `-` is standard input even if a file has that name.
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
    # Without further hard links, there is no need to walk through the folder.
    if file.stat().st_nlink == 1:
        return False
    return any(_is_same(Path(here, name), file) for here, _, names in os.walk(folder) for name in names)


def check_folder_of(file: Path) -> None:
    """Check that the folder of an output file can be written: temporary files are made there."""
    # The right to write the file is not enough: a new file is renamed over it.
    if not os.access(real(file).parent, os.W_OK | os.X_OK):
        raise InputError(f"{file}: cannot be written (no permission for its folder)")


def check_different(inputs: Iterable[Path]) -> None:
    """Check that no input file or folder of a command is named twice, even by two different paths."""
    known = set[Path]()
    for path in inputs:
        if real(path) in known:
            raise InputError(f"{path}: is named twice")
        known.add(real(path))


def write(file: Path, content: str | bytes | Iterable[str]) -> None:
    """Write a file atomically, or a pipe or device directly; a link is followed.

    Characters that UTF-8 cannot encode (lone surrogates) are escaped. A pipe whose reader has ended raises
    `BrokenPipeError`; all other errors are `InputError`.
    """
    pieces = [content] if isinstance(content, str | bytes) else content
    encoded = (p if isinstance(p, bytes) else p.encode("utf-8", "backslashreplace") for p in pieces)
    try:
        # Renaming would replace the pipe or device itself.
        if file.exists() and not file.is_file():
            with file.open("wb") as target:
                target.writelines(encoded)
            return
        file = real(file)
        with temporary(file) as partial:
            with partial.open("wb") as target:
                target.writelines(encoded)
            # Before the renaming: otherwise a power failure may leave the new name with an empty file.
            sync(partial)
            partial.replace(file)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise InputError(f"{file}: cannot be written ({error.strerror})") from None


@contextlib.contextmanager
def temporary(file: Path) -> Iterator[Path]:
    """Make an empty temporary file beside `file`, with its permissions, for a `with` block.

    The file is removed after the block, unless the block has renamed it.
    """
    partial = hidden_path(file, f".{uuid.uuid4().hex[:8]}.partial")
    partial.touch(exist_ok=False)
    try:
        if file.exists():
            # Without setuid, setgid and sticky bits.
            partial.chmod(file.stat().st_mode & 0o777)
        yield partial
    finally:
        partial.unlink(missing_ok=True)


def hidden_path(path: Path, suffix: str) -> Path:
    """Return the path `.NAME` + `suffix` beside a file or folder NAME; a long NAME is cut and hashed."""
    name = os.fsencode(path.name)
    if len(name) > _LONGEST_STEM:
        # Room for "~" and 12 hex digits; "ignore" drops a character that the cut has halved.
        start = name[: _LONGEST_STEM - 13].decode("utf-8", "ignore").encode()
        name = start + b"~" + hashlib.sha256(name).hexdigest()[:12].encode()
    return path.with_name(f".{os.fsdecode(name)}{suffix}")


def sync(path: Path) -> None:
    """Wait until the content of a file or folder is on the disk (fsync)."""
    flags = os.O_RDONLY
    if os.name == "nt":
        if path.is_dir():  # Windows cannot open folders, and keeps their entries in its own journal
            return
        flags = os.O_RDWR  # Windows syncs only what is open for writing
    descriptor = os.open(path, flags)
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
    """Hold a lock on a file or folder, which need not exist, during a `with` block.

    The lock is a file `.NAME` + `suffix` beside it. Only processes that call this function respect the lock;
    it ends with a killed process. A lock that another process has is an `InputError`.
    """
    # Not the package filelock: most versions empty or remove a user's file that has the name of the lock.
    lock = hidden_path(path, suffix)
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        # Between opening and locking, the owner may remove the file; a lock on a removed file protects
        # nothing.
        while True:
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                _lock(descriptor)
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
        is_ours = os.fstat(descriptor).st_size == 0  # our lock files are empty; another file is not ours
        if is_ours and os.name != "nt":
            # While the lock is held, so that nobody else's lock file is removed.
            lock.unlink(missing_ok=True)
        os.close(descriptor)
        if is_ours and os.name == "nt":
            # Windows removes no open file: neither ours, nor one that another process has just locked.
            with contextlib.suppress(OSError):
                lock.unlink()


def _lock(descriptor: int) -> None:
    """Lock an open file; raise BlockingIOError if another process has the lock."""
    if os.name == "nt":
        import msvcrt

        try:
            # One byte, which need not exist.
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        except PermissionError as error:
            raise BlockingIOError(*error.args) from None
    else:
        import fcntl  # late: Windows lacks it

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _is_open(file: Path, descriptor: int) -> bool:
    """Return whether an opened file is still at its path: it was neither removed nor replaced."""
    try:
        return os.path.samestat(file.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
