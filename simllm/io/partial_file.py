"""The partial file, which holds the results of an unfinished command. `--resume` continues from this file."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from simllm.errors import InputError
from simllm.io import output_file


class PartialFile:
    """The file `FILE.partial` of a command whose output file is FILE.

    Each line has a checksum, a space and a JSON object. A line that a killed process left incomplete is
    ignored. The caller must hold the lock of FILE (see `simllm.io.output_file.locked`).
    """

    def __init__(self, output: Path, settings: Mapping[str, Any], resume: bool) -> None:
        """Open the partial file of an output file; the first call of `append` creates a missing one.

        `settings` are JSON values on which the records depend. A file with records is an `InputError` without
        `resume`, or if it was begun with other settings. A file without records is removed.
        """
        self.path = path_of(output)
        self.settings = {"written_by": "simllm", **settings}
        self._records = 0
        if not os.path.lexists(self.path):
            return
        lines = self._lines()
        _, old = next(lines, (0, {}))
        # The name FILE.partial is not unusual: other programs use it, too.
        if old.get("written_by") != "simllm":
            raise InputError(f"{self.path}: was not written by simllm; move it, or name another -o")
        ends = [end for end, _ in lines]
        if not ends:
            self.remove()
            return
        if not resume:
            raise InputError(f"{self.path}: holds an earlier run; --resume continues it, or remove the file")
        for key, value in self.settings.items():
            if old.get(key) != value:
                raise InputError(f"{self.path}: begun with {key} {old.get(key)}, not {value}")
        # A new record must not continue a half-written line.
        os.truncate(self.path, ends[-1])
        self._records = len(ends)

    def append(self, record: Mapping[str, Any], is_synced: bool = False) -> None:
        """Append a record; if `is_synced`, wait until the record is on the disk."""
        # Only with the first record, so that a command that fails at once leaves no file behind.
        if self._records == 0:
            output_file.write(self.path, _line(self.settings))
        try:
            with self.path.open("ab") as file:
                file.write(_line(record))
                if is_synced:
                    file.flush()
                    os.fsync(file.fileno())
        except OSError as error:
            raise InputError(f"{self.path}: cannot be written ({error.strerror})") from None
        self._records += 1

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield the records in the order in which they were appended."""
        lines = self._lines() if self._records else iter(())
        next(lines, None)  # the settings
        for _, record in lines:
            yield record

    def remove(self) -> None:
        """Remove the partial file; call this after the output file has been written."""
        self.path.unlink(missing_ok=True)

    def _lines(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the end of each line, in bytes from the start, and its object; stop before the first damaged
        line.
        """
        # A link could lead to a file of the user, which would be cut off or removed.
        if self.path.is_symlink() or not self.path.is_file():
            return
        end = 0
        with self.path.open("rb") as file:
            for line in file:
                checksum, _, content = line.partition(b" ")
                if checksum != _checksum(content) or not content.endswith(b"\n"):
                    return
                try:
                    value = json.loads(content)
                except (ValueError, RecursionError):
                    return
                if not isinstance(value, dict):
                    return
                end += len(line)
                yield end, value


def path_of(output: Path) -> Path:
    """Return the path of the partial file of an output file."""
    return output.with_name(output.name + ".partial")


def _line(value: Mapping[str, Any]) -> bytes:
    content = json.dumps(value).encode() + b"\n"
    return _checksum(content) + b" " + content


def _checksum(content: bytes) -> bytes:
    return b"%08x" % zlib.crc32(content)
