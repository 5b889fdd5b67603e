"""The partial file of a long output, which `--resume` continues after a run was stopped."""

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
    """The file `FILE.partial`, with the finished records of the output FILE.

    A line is a checksum and a JSON object. The first line is the head, with the settings that the
    records depend on; each other line is a record. If the process is killed, everything after the last
    complete line is dropped. The caller must hold the lock of FILE (`files.locked`).
    """

    def __init__(self, output: Path, head: Mapping[str, Any], resume: bool) -> None:
        """Open the partial file of an output, without writing anything.

        Args:
            output: The output file.
            head: The settings that the records depend on, as JSON values.
            resume: Whether to continue after the records of an earlier run.

        Raises:
            InputError: simllm did not write the partial file, its head differs from `head`, or it has
                records and `resume` is false.
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
        """Append a record, a JSON object; raise InputError if it cannot be written."""
        if self._records == 0:
            files.write(self.path, _line(self.head))
        try:
            with self.path.open("ab") as file:
                file.write(_line(record))
        except OSError as error:
            raise InputError(f"{self.path}: cannot be written ({error.strerror})") from None
        self._records += 1

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield the records in the order in which they were appended."""
        lines = self._lines() if self._records else iter(())
        next(lines, None)  # the head
        for _, record in lines:
            yield record

    def remove(self) -> None:
        """Remove the partial file, after its records have been written to the output."""
        self.path.unlink(missing_ok=True)

    def _lines(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the end (in bytes) and the JSON object of each complete line."""
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
    """Return a JSON object as one line, with its checksum in front."""
    content = json.dumps(value).encode() + b"\n"
    return _checksum(content) + b" " + content


def _checksum(content: bytes) -> bytes:
    return b"%08x" % zlib.crc32(content)
