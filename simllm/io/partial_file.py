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
    """The file `FILE.partial`, which holds the results of an unfinished command whose output file is FILE.

    Each line has a checksum and a JSON object. The object in the first line has the command's settings. The
    objects in all other lines are called records; they have the results. If the process is killed while it
    writes a line, this incomplete line is ignored. The caller must hold the lock of FILE (see
    `simllm.io.output_file.locked`).
    """

    def __init__(self, output: Path, settings: Mapping[str, Any], resume: bool) -> None:
        """Open the partial file that belongs to an output file.

        The partial file holds records: JSON objects with the results of an unfinished command. If there is no
        partial file, the first call of `append` creates it. If an earlier run left a partial file with
        records, `append` adds to it, after a damaged end is cut off. A file without records is removed.

        Args:
            output: The output file.
            settings: The command's settings on which the records depend, as JSON values.
            resume: Whether to continue an earlier run if the partial file has its records.

        Raises:
            InputError: The partial file was not written by simllm. Or it has records, and either `resume` is
                false, or the settings in the file differ from `settings`.
        """
        self.path = path_of(output)
        self.settings = {"written_by": "simllm", **settings}
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
        for key, value in self.settings.items():
            if old.get(key) != value:
                raise InputError(f"{self.path}: begun with {key} {old.get(key)}, not {value}")
        os.truncate(self.path, ends[-1])
        self._records = len(ends)

    def append(self, record: Mapping[str, Any], is_synced: bool = False) -> None:
        """Append a record (a JSON object) to the file, and wait until it is on the disk if `is_synced`.

        Raises:
            InputError: The file cannot be written.
        """
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
        """Yield the records (JSON objects) in the order in which they were appended."""
        lines = self._lines() if self._records else iter(())
        next(lines, None)  # the settings
        for _, record in lines:
            yield record

    def remove(self) -> None:
        """Remove the partial file; call this after the output file has been written."""
        self.path.unlink(missing_ok=True)

    def _lines(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Read the lines of the partial file, and stop before the first damaged line.

        Yields:
            For each line, the position of its end in the file, in bytes, and its JSON object.
        """
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
    """Return the path of the partial file that belongs to an output file: the output path plus ".partial".

    The partial file holds the results of an unfinished command. At the end, the command writes the output
    file.
    """
    return output.with_name(output.name + ".partial")


def _line(value: Mapping[str, Any]) -> bytes:
    """Format a JSON object as one line of the partial file, which holds a command's results so far.

    The line consists of a checksum, a space and the JSON object.
    """
    content = json.dumps(value).encode() + b"\n"
    return _checksum(content) + b" " + content


def _checksum(content: bytes) -> bytes:
    return b"%08x" % zlib.crc32(content)
