"""Rewriting of the Java and Python files of a folder; the rewritten code behaves the same.

For example, variables are renamed, and a `for` loop becomes a `while` loop. All other files are copied.
"""

from __future__ import annotations

import errno
import json
import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from simllm.errors import InputError
from simllm.io import output_file, printable_path, real_path
from simllm.io.output_folder import MARKER
from simllm.perturb.code.rewrite_json_lines import vary_items
from simllm.perturb.code.rewrite_settings import RewritePlan

SUFFIXES = {".java": "java", ".py": "python"}
RECORD = "variants.jsonl"  # the file in the output folder that records the changes to each source file
_NOT_COPIED = (".git", MARKER)  # git's own files, and the marker of simllm
_SHOWN = 5  # unparsed files that warnings name
_LARGEST = 16 * 2**20  # bytes of a source file that is parsed
_PART = 2**20  # bytes that are copied at once


class FoundFile(NamedTuple):
    """An input file or symbolic link, and what is done with it to make an output folder.

    Attributes:
        name: The relative path in the output folder.
        path: The path of the input file or link.
        action: "rewrite" for a source file, "copy" for a file that stays unchanged, and "link" for a symbolic
            link, which is recreated in the output folder.
    """

    name: str
    path: Path
    action: str


def vary_files(paths: Sequence[Path], plan: RewritePlan, out: Path) -> Iterator[dict[str, Any]]:
    """Write rewritten variants of Java and Python files into a folder; copy all other files unchanged.

    If `paths` is a single folder, its content goes directly into `out`. Otherwise, each file or folder in
    `paths` keeps its own name inside `out`. The permissions of files and folders are kept, too, so that
    scripts can still be run, but never setuid, setgid and sticky bits, owners, ACLs or extended attributes.
    Hard links become separate files, and holes of sparse files stay holes. The file `variants.jsonl` in `out`
    gets a row (a dict that describes the variant) for each source file.

    A source file that cannot be parsed, or is nested too deeply, is copied unchanged, with a warning.

    Args:
        paths: Files and folders.
        plan: The settings of the rewrites.
        out: An existing folder.

    Yields:
        The row of each source file. Its key `id` has the file's path in `out`; the function `vary_items`
        describes the other keys.

    Raises:
        InputError: A file cannot be read, no source file can be parsed, or two files would get the same path
            in `out`.
    """
    plan = replace(plan, is_file=True)
    if len(paths) == 1 and paths[0].is_dir():
        out.chmod(_permissions(paths[0]) | 0o700)
    rows = []
    problems = []
    links = []
    for name, path, action in find_files(paths):
        target = out / name
        _make_folders(target.parent, out, path.parent)
        if action == "link":
            links.append((target, path))
            continue
        content = None
        if action == "rewrite":
            row = _vary_file(name, path, plan)
            if row["status"] == "unparsed":
                line, _, reason = row["reason"].removeprefix("line ").partition(": ")
                problems.append(f"{printable_path.printable(path)}:{line}: {reason}")
            else:
                content = row["text"].encode()
            yield row
            rows.append(row)
        _copy(path, target, content)
    if len(problems) == len(rows):
        raise InputError(problems[0] + ("; no other file can be parsed" if len(rows) > 1 else ""))
    _warn_unparsed(problems)
    output_file.write(out / RECORD, (json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    _recreate_links(links, out)  # last, so that nothing is written through a link


def _vary_file(name: str, path: Path, plan: RewritePlan) -> dict[str, Any]:
    """Rewrite a source file, and return its row.

    Raises:
        InputError: The file cannot be read.
    """
    language = SUFFIXES[path.suffix]
    try:
        if path.stat().st_size > _LARGEST:
            reason = f"line 1: the file is larger than {_LARGEST >> 20} MiB"
            return {"id": name, "language": language, "status": "unparsed", "reason": reason}
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    text = content.decode(errors="surrogateescape")  # `rewrite` names the line that is not UTF-8
    (row,) = vary_items([{"id": name, "language": language, "source": text}], plan)
    return row


def _make_folders(folder: Path, out: Path, original: Path) -> None:
    """Make a folder inside the output folder, with the permissions of the original folder and those above."""
    missing = []
    while folder != out and not folder.exists():
        missing.append((folder, original))
        folder, original = folder.parent, original.parent
    for made, source in reversed(missing):
        made.mkdir(0o700)
        made.chmod(_permissions(source) | 0o700)


def _permissions(path: Path) -> int:
    """Return the permissions of a file without setuid, setgid and sticky bits.

    A copy belongs to the user who runs this program. With the setuid bit of another user's file, it would run
    with the rights of that user, who may be root.
    """
    return path.stat().st_mode & 0o777


def _copy(path: Path, target: Path, content: bytes | None) -> None:
    """Write a new file with the permissions of another file.

    Args:
        path: The other file.
        target: The new file.
        content: The content of the new file; None to copy that of the other file.

    Raises:
        InputError: The other file cannot be read.
    """
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as new:  # noqa: PTH123
        if content is not None:
            new.write(content)
        else:
            try:
                source = path.open("rb", buffering=0)
            except OSError as error:
                raise InputError(f"{path}: cannot be read ({error.strerror})") from None
            with source:
                _copy_data(source.fileno(), descriptor, os.fstat(source.fileno()).st_size)
    target.chmod(_permissions(path))


def _copy_data(source: int, target: int, size: int) -> None:
    """Copy the data of an open file to an empty open file; holes are not filled with zeros."""
    os.ftruncate(target, size)
    at = 0
    while at < size:
        try:
            at = os.lseek(source, at, os.SEEK_DATA)
            end = os.lseek(source, at, os.SEEK_HOLE)
        except OSError as error:
            if error.errno == errno.ENXIO:  # no data after here
                return
            end = size  # a file system that knows no holes
        while at < min(end, size):
            part = os.pread(source, min(end - at, _PART), at)
            if not part:
                return  # the file has become shorter
            at += os.pwrite(target, part, at)


def _warn_unparsed(problems: Sequence[str]) -> None:
    """Warn about source files that cannot be parsed: name the first ones, and count the others.

    Args:
        problems: The file, line and reason of each problem.
    """
    for problem in problems[:_SHOWN]:
        warnings.warn(f"{problem}; copied unchanged", stacklevel=3)
    if more := len(problems[_SHOWN:]):
        warnings.warn(f"{more:,} more unparsed files are copied unchanged; see {RECORD}", stacklevel=3)


def _recreate_links(links: Iterable[tuple[Path, Path]], out: Path) -> None:
    """Recreate symbolic links in an output folder, except links that lead out of this folder or nowhere.

    Args:
        links: Two paths for each link: the path of the new link in the output folder, and the path of the
            original link. The new link gets the same target as the original link.
        out: The output folder, with all its files.
    """
    made = []
    for target, link in links:
        target.symlink_to(link.readlink())
        made.append(target)
    while stray := [link for link in made if not (link.exists() and _is_inside(link, out))]:
        for link in stray:  # other links may lead through this one
            link.unlink()
            made.remove(link)


def _is_inside(link: Path, folder: Path) -> bool:
    """Return whether a symbolic link leads into a folder."""
    return real_path.real(link).is_relative_to(real_path.real(folder))


def find_files(paths: Sequence[Path]) -> list[FoundFile]:
    """List the input files and symbolic links, and say what to do with each to make an output folder.

    Java and Python files are rewritten. Other files are copied, and so are hidden files inside a folder.
    Symbolic links inside a folder are recreated in the output folder. A folder's `.git`, and the file
    with which simllm marks folders that it wrote, are left out, and so are pipes, sockets and devices.

    Args:
        paths: The input files and folders.

    Returns:
        The files and links, sorted by their relative path in the output folder. The attribute `action` of
        each is "rewrite", "copy" or "link".

    Raises:
        InputError: A path does not exist, there is no Java or Python file, two files would get the same path
            in the output folder, or a file would get the reserved path `variants.jsonl`.
    """
    found: dict[str, FoundFile] = {}
    for path in paths:
        if not path.exists():
            raise InputError(f"{path}: no such file or folder")
        if not path.is_file() and not path.is_dir():
            raise InputError(f"{path}: expected a file or folder, not a pipe, socket or device")
        if path.is_file():
            own = [FoundFile(path.name, path, "rewrite" if path.suffix in SUFFIXES else "copy")]
        else:
            prefix = "" if len(paths) == 1 else f"{path.resolve().name}/"
            own = [file._replace(name=prefix + file.name) for file in _files(path)]
        for file in own:
            if file.name in found or file.name == RECORD:
                raise InputError(f"{file.path}: its variant would replace another file, {file.name}")
            found[file.name] = file
    if not any(file.action == "rewrite" for file in found.values()):
        raise InputError(f"{paths[0]}: no file ending in {' or '.join(SUFFIXES)}")
    return sorted(found.values())


def _files(folder: Path) -> Iterator[FoundFile]:
    """Yield the files and symbolic links in a folder and its subfolders.

    The attribute `action` of each result is "rewrite", "copy" or "link". A symbolic link always has the
    action "link". A hidden file, or a file in a hidden folder, has the action "copy" even if it holds source
    code.
    """
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in _NOT_COPIED]
        for name in (*folders, *(name for name in names if name not in _NOT_COPIED)):
            path = Path(place, name)
            inner = path.relative_to(folder)
            is_source = path.suffix in SUFFIXES and not any(part.startswith(".") for part in inner.parts)
            if path.is_symlink():
                yield FoundFile(inner.as_posix(), path, "link")
            elif path.is_file():
                yield FoundFile(inner.as_posix(), path, "rewrite" if is_source else "copy")
