"""Variants of the source files in folders, whose other files are copied."""

from __future__ import annotations

import errno
import json
import os
import shutil
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from simllm.errors import InputError
from simllm.io import output_file, tables
from simllm.io.output_folder import MARKER
from simllm.perturb.code.variants import RewritePlan, vary_items

SUFFIXES = {".java": "java", ".py": "python"}
RECORD = "variants.jsonl"  # the file in the output folder that records the changes to each source file
_NOT_COPIED = (".git", MARKER)  # git's own files, and the marker of simllm
_SHOWN = 5  # unparsed files that warnings name
_LARGEST = 16 * 2**20  # bytes of a source file that is parsed
_PART = 2**20  # bytes that are copied at once


class FoundFile(NamedTuple):
    """An input file or symbolic link.

    Attributes:
        name: The relative path in the output folder.
        path: The path of the input file or link.
        action: "rewrite", "copy", or "link" for a symbolic link, which is recreated.
    """

    name: str
    path: Path
    action: str


def vary_files(paths: Sequence[Path], plan: RewritePlan, out: Path) -> Iterator[dict[str, Any]]:
    """Write variants of Java and Python files into an existing folder; copy other files and unparsed sources.

    The content of a single input folder goes directly into `out`; several inputs keep their names. The rows,
    whose `id` is the path in `out`, are yielded and also written to `variants.jsonl`. `InputError` is raised
    if a file cannot be read, no source can be parsed, or two files would get the same path.
    """
    # A file with a single function is a file, too: others may import the function.
    plan = replace(plan, is_file=True)
    if len(paths) == 1 and paths[0].is_dir():
        # Permissions are kept, so that scripts can still be run. The owner may always write: the copy is
        # still to be filled. Owners, ACLs, extended attributes and hard links are not kept.
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
                problems.append(f"{tables.printable(path)}:{line}: {reason}")
            else:
                content = row["text"].encode()
            yield row
            rows.append(row)
        _copy(path, target, content)
    if len(problems) == len(rows):
        raise InputError(problems[0] + ("; no other file can be parsed" if len(rows) > 1 else ""))
    _warn_unparsed(problems)
    output_file.write(out / RECORD, (json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    # Links come last, so that nothing is written through a link.
    _recreate_links(links, out)


def _vary_file(name: str, path: Path, plan: RewritePlan) -> dict[str, Any]:
    """Rewrite a source file, and return its row."""
    language = SUFFIXES[path.suffix]
    try:
        if path.stat().st_size > _LARGEST:
            reason = f"line 1: the file is larger than {_LARGEST >> 20} MiB"
            return {"id": name, "language": language, "status": "unparsed", "reason": reason}
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    # Undecodable bytes stay, because `rewrite` then names the line that is not UTF-8.
    text = content.decode(errors="surrogateescape")
    (row,) = vary_items([{"id": name, "language": language, "source": text}], plan)
    return row


def _make_folders(folder: Path, out: Path, original: Path) -> None:
    """Make a folder inside the output folder, with the permissions of the original folder and those above."""
    missing = []
    while folder != out and not folder.exists():
        missing.append((folder, original))
        folder, original = folder.parent, original.parent
    for made, source in reversed(missing):
        # `mkdir` is subject to the umask, `chmod` is not.
        made.mkdir(0o700)
        made.chmod(_permissions(source) | 0o700)


def _permissions(path: Path) -> int:
    """Return the permissions of a file without setuid, setgid and sticky bits."""
    # A copy belongs to the user who runs this program. With the setuid bit of another user's file, it would
    # run with the rights of that user, who may be root.
    return path.stat().st_mode & 0o777


def _copy(path: Path, target: Path, content: bytes | None) -> None:
    """Write a new file with the permissions of `path`, and with its content if `content` is None."""
    # O_EXCL, so that neither a file nor a link that appeared meanwhile is written. Private until the content
    # is complete.
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    with open(descriptor, "wb") as new:  # noqa: PTH123
        if content is not None:
            new.write(content)
        else:
            try:
                source = path.open("rb", buffering=0)
            except OSError as error:
                raise InputError(f"{path}: cannot be read ({error.strerror})") from None
            with source:
                if hasattr(os, "SEEK_DATA"):
                    _copy_data(source.fileno(), descriptor, os.fstat(source.fileno()).st_size)
                else:  # Windows
                    shutil.copyfileobj(source, new)
    target.chmod(_permissions(path))


def _copy_data(source: int, target: int, size: int) -> None:
    """Copy the data of an open file to an empty open file; holes are not filled with zeros."""
    # What is not written below stays a hole, so a sparse file takes no more room than the original.
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
    """Warn about the first unparsed files, given as "FILE:LINE: REASON", and count the others."""
    for problem in problems[:_SHOWN]:
        warnings.warn(f"{problem}; copied unchanged", stacklevel=3)
    if more := len(problems[_SHOWN:]):
        warnings.warn(f"{more:,} more unparsed files are copied unchanged; see {RECORD}", stacklevel=3)


def _recreate_links(links: Iterable[tuple[Path, Path]], out: Path) -> None:
    """Recreate symbolic links (new path, original link), except links that lead out of `out` or nowhere."""
    made = []
    for target, link in links:
        target.symlink_to(link.readlink())
        made.append(target)
    # Repeated, because a removed link may have been the way of another one.
    while stray := [link for link in made if not (link.exists() and _is_inside(link, out))]:
        for link in stray:  # other links may lead through this one
            link.unlink()
            made.remove(link)


def _is_inside(link: Path, folder: Path) -> bool:
    return output_file.real(link).is_relative_to(output_file.real(folder))


def find_files(paths: Sequence[Path]) -> list[FoundFile]:
    """List the input files and symbolic links with their actions, sorted by their path in the output folder.

    `.git`, simllm's own marker of output folders, pipes, sockets and devices inside a folder are left out.
    `InputError` is raised if a path does not exist, there is no source file, or two files would get the same
    path.
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
            # `resolve`, because the name of `.` or `..` is not a folder's name.
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
    """Yield the files and symbolic links in a folder and its subfolders."""
    # `os.walk` lists links to folders under `folders`, but does not follow them.
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in _NOT_COPIED]
        for name in (*folders, *(name for name in names if name not in _NOT_COPIED)):
            path = Path(place, name)
            inner = path.relative_to(folder)
            # Hidden folders hold environments and caches, not the code of the project.
            is_source = path.suffix in SUFFIXES and not any(part.startswith(".") for part in inner.parts)
            if path.is_symlink():
                yield FoundFile(inner.as_posix(), path, "link")
            elif path.is_file():
                # Pipes, sockets and devices would block or never end when read.
                yield FoundFile(inner.as_posix(), path, "rewrite" if is_source else "copy")
