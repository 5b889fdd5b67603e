"""The partial file of a long output: what a stopped run leaves, and what `--resume` continues."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from simllm.errors import InputError
from simllm.io import files


class PartialFile:
    """The finished records of the output FILE, in `FILE.partial`.

    The first line, the head, holds what the records depend on. Each other line is a record. A line
    is a JSON object after its checksum. The process may be killed at any moment: whatever follows
    the last whole line is dropped. The caller holds the lock of FILE (`files.locked`).
    """

    def __init__(self, output: Path, head: Mapping[str, Any], resume: bool) -> None:
        """Open the partial file of `output`; write nothing yet.

        Args:
            output: The file that is written once all records are there.
            head: What the records depend on, as JSON values.
            resume: Whether to continue after the records of an earlier run.

        Raises:
            InputError: simllm did not write the file, it has records and `resume` is false, or its
                head differs from `head`.
        """
        self.path = path_of(output)
        self.head = {"written_by": "simllm", **head}
        self._records = 0
        if not os.path.lexists(self.path):
            return
        lines = self._lines()
        _, old = next(lines, (0, {}))
        if old.get("written_by") != "simllm":
            raise InputError(f"{self.path}: was not written by simllm; move it, or name another -o")
        ends = [end for end, _ in lines]
        if not ends:
            self.remove()
            return
        if not resume:
            raise InputError(f"{self.path}: holds an earlier run; --resume continues it, or remove the file")
        for key, value in self.head.items():
            if old.get(key) != value:
                raise InputError(f"{self.path}: begun with {key} {old.get(key)}, not {value}")
        os.truncate(self.path, ends[-1])
        self._records = len(ends)

    def append(self, record: Mapping[str, Any]) -> None:
        """Write a record, a JSON object, at the end; raise InputError if it cannot be written."""
        if self._records == 0:
            files.write(self.path, _line(self.head))
        try:
            with self.path.open("ab") as file:
                file.write(_line(record))
        except OSError as error:
            raise InputError(f"{self.path}: cannot be written ({error.strerror})") from None
        self._records += 1

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield the records from the first to the last."""
        lines = self._lines() if self._records else iter(())
        next(lines, None)  # the head
        for _, record in lines:
            yield record

    def remove(self) -> None:
        """Remove the file, once its records are in the output."""
        self.path.unlink(missing_ok=True)

    def _lines(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield what each whole line holds, and the byte at which the line ends."""
        if self.path.is_symlink() or not self.path.is_file():
            return
        end = 0
        with self.path.open("rb") as file:
            for line in file:
                checksum, _, content = line.partition(b" ")
                if checksum != _checksum(content) or not content.endswith(b"\n"):
                    return
                end += len(line)
                yield end, json.loads(content)


def path_of(output: Path) -> Path:
    """Return the path of the partial file of `output`."""
    return output.with_name(output.name + ".partial")


def _line(value: Mapping[str, Any]) -> bytes:
    content = json.dumps(value).encode() + b"\n"
    return _checksum(content) + b" " + content


def _checksum(content: bytes) -> bytes:
    return b"%08x" % zlib.crc32(content)
