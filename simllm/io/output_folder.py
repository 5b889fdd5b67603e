"""Output folders: folders that simllm writes, adds to and replaces without a loss of the user's files.

simllm writes only into folders that are missing, empty, or have a marker for the same content. It overwrites
and removes only what the marker lists.

A folder is replaced as a whole: the new one is written beside the old one, under a temporary name, and takes
its place. If the process is killed meanwhile, the next one completes or undoes the replacement.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import stat
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from safetensors import SafetensorError

from simllm.errors import InputError
from simllm.io import output_file

MARKER = ".simllm"
# Names of the temporary folders and the lock that a killed replacement of the folder NAME leaves.
_LEFTOVER = re.compile(r"\.(.+?)(?:\.[a-z0-9_]{8}\.(old|partial)|\.lock)")


@dataclass(frozen=True)
class Marker:
    """The content of a marker.

    Attributes:
        content: What the folder holds, such as "a model"; empty if the marker does not say it.
        files: The relative paths of what simllm wrote: files, links and empty folders.
        sha256: The SHA-256 of the files as simllm wrote them; without files that may change.
    """

    content: str
    files: Sequence[str]
    sha256: Mapping[str, str] = field(default_factory=dict)


class OutputFolder:
    """A folder that simllm writes, whether it exists already or not.

    All methods raise `InputError` if the folder may not be used in this way or an operation fails.
    """

    def __init__(self, path: Path, content: str = "") -> None:
        """Name the folder and what it holds, such as "a model"; without `content`, anything from simllm."""
        self.path, self.content = path, content

    @property
    def marker(self) -> Marker | None:
        """The marker; None if the folder has no valid one."""
        file = self.path / MARKER
        if os.path.lexists(file) and not os.path.isfile(file):  # noqa: PTH113 (never raises an error)
            return None  # a pipe or a device has no end
        try:
            row = json.loads(file.read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError, ValueError, RecursionError):
            return None
        except OSError as error:
            raise InputError(f"{file}: cannot be read ({error.strerror})") from None
        # Anybody may have written the marker: a name such as ../x must never be removed.
        names = row.get("files") if isinstance(row, dict) else None
        if not isinstance(names, list) or not all(map(_is_inside, names)):
            return None
        sha256 = row.get("sha256")
        known = {name: sha256[name] for name in names if name in sha256} if isinstance(sha256, dict) else {}
        return Marker(str(row.get("content", "")), names, known)

    def check_place(self) -> None:
        """Check that the folder exists and can be written, or that it can be created."""
        folder = output_file.real(self.path)
        try:
            loops = [path for path in (folder, *folder.parents) if path.is_symlink()]  # others are resolved
            existing = next(path for path in (folder, *folder.parents) if path.exists())
        except OSError as error:
            raise InputError(f"{folder}: cannot be used ({error.strerror})") from None
        if loops:
            raise InputError(f"{loops[0]}: is a loop of links")
        if not existing.is_dir():
            raise InputError(f"{existing}: is not a folder")
        if not os.access(existing, os.W_OK | os.X_OK):
            raise InputError(f"{existing}: cannot be written to")

    def check(self) -> None:
        """Check that simllm may write into the folder: no foreign files, no other content."""
        self.check_place()
        folder, marker = output_file.real(self.path), self.marker
        if _names_in(folder) and not marker:
            raise InputError(
                f"{folder}: holds files that simllm did not write (no {MARKER} there); "
                "name a new or empty folder"
            )
        if marker and self.content and marker.content not in ("", self.content):
            raise InputError(f"{folder}: holds {marker.content}; name another folder for {self.content}")

    def check_replaceable(self, names: Iterable[str] = ()) -> None:
        """Check that the folder may be replaced by a new one without a loss of a file or a change of the
        user.

        `names` are the files that the new folder will have, as far as they are known.
        """
        self.check()
        path, marker = output_file.real(self.path), self.marker
        # After a replacement, the shell would stand in the removed old folder.
        if path == output_file.real(Path()):
            raise InputError(f"{self.path}: is the current folder, which cannot be replaced; name another")
        # A mount point cannot be renamed.
        if os.path.ismount(path):
            raise InputError(f"{self.path}: is a mount point, which cannot be replaced; name a folder in it")
        taken = set(names).intersection(_names_in(path)).difference(marker.files if marker else ())
        if taken:
            raise InputError(f"{self.path / min(taken)}: was not written by simllm; move it away")
        # A file with a hash belongs to simllm only as long as the user has not changed it.
        for name, digest in marker.sha256.items() if marker else ():
            if (path / name).is_file() and output_file.sha256_of(path / name) != digest:
                raise InputError(f"{self.path / name}: was changed after simllm wrote it; move it away")

    def check_apart(self, sources: Iterable[Path]) -> None:
        """Check that the folder is none of the sources that a command reads, not inside one, and not above
        one.
        """
        a = output_file.real(self.path)
        for source in sources:
            b = output_file.real(source)
            if output_file.is_above(a, b) or (
                stat.S_ISDIR(output_file.mode_of(b)) and output_file.is_above(b, a)
            ):
                raise InputError(
                    f"{self.path}: is the source {source}, inside it or above it; name another folder"
                )

    def own(self) -> None:
        """Create the folder if it is missing, and mark it; an existing marker is kept."""
        self.check()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{self.path}: cannot be written ({error.strerror})") from None
        if self.marker is None:
            self._write_marker(Marker(self.content, []))

    def write(self, name: str, text: str | bytes) -> None:
        """Write a file into the marked folder, and list the file in the marker; a user's file is not
        replaced.
        """
        self.reserve([name])
        file = self.path / name
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{file}: cannot be written ({error.strerror})") from None
        output_file.write(file, text)

    def reserve(self, names: Iterable[str]) -> None:
        """List files in the marker, so that simllm may write them later."""
        names = list(names)
        marker = self._check_additions(names)
        # The marker lists a file before the file is written: a kill between the two leaves no file without an
        # owner. The hash of a file that is written again no longer holds.
        if set(names) - set(marker.files) or set(names) & set(marker.sha256):
            sha256 = {name: digest for name, digest in marker.sha256.items() if name not in names}
            self._write_marker(Marker(marker.content, list({*marker.files, *names}), sha256))

    def check_links(self, names: Iterable[str]) -> None:
        """Check that no file that simllm is about to write is a symbolic link.

        simllm writes none, so the folder comes from elsewhere, and the link may lead to any file of the user.

        Raises:
            InputError: A file is a link.
        """
        for file in (self.path / name for name in names):
            if file.is_symlink():
                raise InputError(f"{file}: is a link; writing there would change another file; move it away")

    def check_addition(self, name: str) -> list[str]:
        """Check that simllm may write a file into the marked folder, and return what it wrote so far."""
        return list(self._check_additions([name]).files)

    @contextlib.contextmanager
    def replacing(self, *, keep_edits: bool = True) -> Iterator[Path]:
        """Replace the folder atomically by what a `with` block writes into a temporary folder.

        The user's files in the old folder are kept, and so are permissions. If the block raises an exception,
        the old folder stays unchanged. With `keep_edits`, a later replacement is refused if the user changes
        a file of the new folder; without it, changed files are replaced, which repairs damaged files.
        """
        self.check_replaceable()
        folder = OutputFolder(output_file.real(self.path), self.content)
        with output_file.locked(folder.path):
            new = OutputFolder(_temporary(folder.path, "partial"), self.content)
            try:
                # First of all, because a killed process may have left the old folder under a temporary name.
                folder._recover()
                new.path.mkdir()
            except OSError as error:
                raise InputError(f"{folder.path}: cannot be written ({error.strerror})") from None
            try:
                # At once, so that a folder that a kill leaves behind is known as simllm's and can be removed.
                new._write_marker(Marker(self.content, []))
                yield new.path
                names = sorted(_entries(new.path) - {MARKER})
                hashed = [name for name in names if (new.path / name).is_file()] if keep_edits else []
                sha256 = {name: output_file.sha256_of(new.path / name) for name in hashed}
                new._write_marker(Marker(self.content, names, sha256))
                folder._replace_by(new)
            except (OSError, SafetensorError) as error:
                raise InputError(f"{folder.path}: cannot be written ({error})") from None
            finally:
                shutil.rmtree(new.path, ignore_errors=True)

    def remove(self) -> None:
        """Remove what simllm wrote into the folder; then remove the folder if it is empty."""
        for name in self._written():
            # The user may have put a link in the place of a subfolder.
            leads_out = any((self.path / above).is_symlink() for above in list(Path(name).parents)[:-1])
            if not leads_out and not _is_folder(self.path / name):
                (self.path / name).unlink(missing_ok=True)
        # In reverse, so that inner folders come before outer ones.
        for name in sorted(self._own_folders(), reverse=True):
            _remove_empty(self.path / name)
        if _names_in(self.path) == [MARKER] and self.marker:
            (self.path / MARKER).unlink()
        _remove_empty(self.path)

    def recover_inside(self) -> None:
        """Clean up after processes were killed while they wrote into the folder; no other process may write
        now.

        Interrupted replacements of subfolders are completed or undone; temporary files are removed.
        """
        matches = [match for match in map(_LEFTOVER.fullmatch, _names_in(self.path)) if match]
        for name in sorted({match[1] for match in matches}):
            # A running replacement has the lock; its folders are no leftovers.
            with output_file.locked(self.path / name):
                OutputFolder(self.path / name)._recover()
        for match in matches:
            path = self.path / match[0]
            if match[2] == "partial" and path.is_file() and not path.is_symlink():
                path.unlink()  # from a killed call of `output_file.write`

    def _write_marker(self, marker: Marker) -> None:
        row = {"written_by": "simllm", **asdict(marker), "files": sorted(marker.files)}
        output_file.write(self.path / MARKER, json.dumps(row, indent=1) + "\n")

    def _check_additions(self, names: Iterable[str]) -> Marker:
        """Check that simllm may write files into the marked folder, and return its marker."""
        marker = self.marker
        if marker is None:
            raise InputError(f"{self.path}: was not written by simllm (no {MARKER} there)")
        self.check_links(names)
        for name in set(names).difference(marker.files):
            if (self.path / name).exists():
                raise InputError(f"{self.path / name}: was not written by simllm; move it away")
        return marker

    def _written(self) -> Sequence[str]:
        """Return the relative paths of what simllm wrote."""
        marker = self.marker
        return marker.files if marker else ()

    def _own_folders(self) -> set[str]:
        """Return the relative paths of the subfolders that simllm made: those with its files, or empty."""
        written = self._written()
        above = {path.as_posix() for name in written for path in list(Path(name).parents)[:-1]}
        return {name for name in above.union(written) if _is_folder(self.path / name)}

    def _others(self) -> set[str]:
        """Return the relative paths of the user's files, links and empty folders."""
        return _entries(self.path) - {MARKER, *self._written()} - self._own_folders()

    def _replace_by(self, new: OutputFolder) -> None:
        """Move the folder `new` to the place of this one, and the user's files into it."""
        self._copy_modes(new.path)
        # Everything is on the disk before the names change.
        for path in (*new.path.rglob("*"), new.path):
            if not path.is_symlink():
                output_file.sync(path)
        # Again: the user may have changed a file while the new folder was written.
        self.check_replaceable()
        for name in sorted(
            self._others()
        ):  # the user may have a folder where a new file comes, or vice versa
            above = [new.path / path for path in Path(name).parents]
            is_merged = _is_folder(self.path / name) and _is_folder(new.path / name)
            is_taken = os.path.lexists(new.path / name) and not is_merged
            if is_taken or any(os.path.lexists(path) and not _is_folder(path) for path in above):
                raise InputError(f"{self.path / name}: was not written by simllm; move it away")
        old = None
        if _names_in(self.path):
            old = OutputFolder(_temporary(self.path, "old"), self.content)
            # Two renames, because one call cannot replace a folder that is not empty. A kill between them is
            # undone by `_recover`.
            self.path.rename(old.path)
        new.path.rename(self.path)
        output_file.sync(self.path.parent)
        if old:
            self._take_others(old)

    def _copy_modes(self, new: Path) -> None:
        """Give new files and folders the permissions of those that they replace, and no setuid bits."""
        for path in (new, *new.rglob("*")):
            if path.is_symlink():
                continue
            old, mode = self.path / path.relative_to(new), path.stat().st_mode
            before = old.stat().st_mode if old.exists() and not old.is_symlink() else mode
            if path.is_dir():  # a setgid bit that a new folder has comes from the folder above
                path.chmod(before & 0o777 | mode & (stat.S_ISGID | stat.S_ISVTX))
            else:
                # A file keeps whether it is executable, because only its writer knows what it holds.
                path.chmod(before & 0o666 | mode & 0o111)

    def _take_others(self, old: OutputFolder) -> None:
        """Move the user's files from the old folder into this one, and remove the old folder.

        A user's file whose name is taken here stays in the old folder, which is then not removed.
        """
        ours, written = old._own_folders(), {MARKER, *old._written()}

        def move(inner: Path) -> None:
            for name in sorted(inner / found for found in _names_in(old.path / inner)):
                source, target = old.path / name, self.path / name
                if _is_folder(source) and (name.as_posix() in ours or _is_folder(target)):
                    move(name)
                    if name.as_posix() not in ours:
                        _remove_empty(source)
                elif name.as_posix() not in written and not os.path.lexists(target):
                    target.parent.mkdir(parents=True, exist_ok=True)
                    source.rename(target)

        move(Path())
        old.remove()

    def _recover(self) -> None:
        """Complete a killed replacement if the new folder is in place; otherwise move the old folder back."""
        for left in self._leftovers("old"):
            if left.marker is None:
                _remove_empty(left.path)  # killed while it was empty
            elif self.path.exists():
                self._take_others(left)
            else:
                left.path.rename(self.path)
        for left in self._leftovers("partial"):
            if left.marker is None:  # killed before it had its marker
                # The temporary file of the marker, from `output_file.write`.
                for path in left.path.glob(f".{MARKER}.*.partial"):
                    path.unlink()
                _remove_empty(left.path)
            else:
                _discard(left.path)

    def _leftovers(self, suffix: str) -> list[OutputFolder]:
        """Find the temporary folders of killed replacements of this folder, "old" or "partial" ones."""
        stem = output_file.hidden_path(self.path, "").name.removeprefix(".")
        matches = (_LEFTOVER.fullmatch(name) for name in _names_in(self.path.parent))
        return [
            OutputFolder(self.path.parent / match[0])
            for match in matches
            if match and (match[1], match[2]) == (stem, suffix)
        ]


def _is_inside(name: object) -> bool:
    """Return whether a name in a marker is a path below the folder of the marker."""
    if not isinstance(name, str) or "\0" in name:
        return False
    parts = Path(name).parts
    # No parts: the name is "." or empty, which is the folder itself.
    return bool(parts) and not Path(name).is_absolute() and ".." not in parts


def _is_folder(path: Path) -> bool:
    """Return whether a path is a folder, and not a link to one."""
    return path.is_dir() and not path.is_symlink()


def _names_in(folder: Path) -> list[str]:
    """Return the names of all files and folders in a folder; no names if the folder is missing."""
    try:
        return os.listdir(folder) if folder.is_dir() else []  # noqa: PTH208 (an iterator is read too late)
    except OSError as error:
        raise InputError(f"{folder}: cannot be read ({error.strerror})") from None


def _entries(folder: Path) -> set[str]:
    """Return the relative paths of the files, links and empty folders in a folder and its subfolders."""
    found = set[str]()
    for here, inner, names in os.walk(folder):
        links = [name for name in inner if Path(here, name).is_symlink()]
        inside = Path(here).relative_to(folder)
        found.update((inside / name).as_posix() for name in (*names, *links))  # the same on all systems
        if not inner and not names and here != os.fspath(folder):
            found.add(inside.as_posix())
    return found


def _temporary(folder: Path, suffix: str) -> Path:
    """Return an unused path beside a folder for its replacement ("partial") or its old content ("old")."""
    return output_file.hidden_path(folder, f".{uuid.uuid4().hex[:8]}.{suffix}")


def _remove_empty(folder: Path) -> None:
    """Remove a folder if it is empty; otherwise, or if it cannot be removed, do nothing."""
    with contextlib.suppress(OSError):
        folder.rmdir()


def _discard(partial: Path) -> None:
    """Remove a temporary folder, the marker last: after a kill, it shows that the rest may be removed."""
    for path in partial.iterdir():
        if _is_folder(path):
            shutil.rmtree(path)
        elif path.name != MARKER:
            path.unlink()
    shutil.rmtree(partial)
