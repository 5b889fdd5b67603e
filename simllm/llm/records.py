"""Records on disk: JSON objects that are appended to a file, and a cache of values in such a file.

simllm must have made the folder of such a file, because it adds files only to its own folders.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from simllm.errors import InputError
from simllm.io import reading
from simllm.io.output_folder import OutputFolder


class JsonLinesLog:
    """A file of JSON lines to which several threads append.

    With `is_synced`, `append` waits until the line is on the disk. Otherwise, a power failure may lose the
    last lines, but a killed process loses nothing. `rows` are the objects that were in the file when it was
    opened, each with its location for error messages.
    """

    def __init__(self, folder: Path, name: str, is_synced: bool = False) -> None:
        file = folder / name
        if name not in OutputFolder(folder).check_addition(name) or not file.exists():
            OutputFolder(folder).write(name, "")
        try:
            with file.open("rb+") as data:
                content = data.read()
                # A killed process may have left half a line, to which nothing may be appended.
                data.truncate(content.rfind(b"\n") + 1)
            self.rows = read_log(file)
            self._file = file.open("ab")
        except OSError as error:
            raise InputError(f"{file}: cannot be written ({error.strerror})") from None
        self._name, self._is_synced = file, is_synced
        self._writing, self._syncing = threading.Lock(), threading.Lock()
        self._written = self._synced = 0

    def append(self, row: dict[str, Any]) -> None:
        """Append an object as a line."""
        line = json.dumps(row, separators=(",", ":")).encode() + b"\n"
        try:
            with self._writing:
                self._file.write(line)
                self._file.flush()
                self._written += 1
                own = self._written
            # Threads that append at the same time share one wait: the first syncs the lines of all.
            with self._syncing:
                if self._is_synced and self._synced < own:
                    # Read before the sync: lines written during it may not be on the disk.
                    target = self._written
                    os.fsync(self._file.fileno())
                    self._synced = target
        except OSError as error:
            raise InputError(f"{self._name}: cannot be written ({error.strerror})") from None

    def close(self) -> None:
        """Close the file, after the lines that `append` failed to write, if there are any."""
        try:
            self._file.close()
        except OSError as error:
            raise InputError(f"{self._name}: cannot be written ({error.strerror})") from None


def read_log(file: Path) -> list[tuple[str, dict[str, Any]]]:
    """Read JSON lines with their locations, such as "FILE, line 3"; empty if the file does not exist."""
    return list(reading.objects(file)) if file.exists() else []


class KeptValues:
    """Cache of JSON values by key, in a file of JSON lines. Several threads may use it at the same time.

    `source` is a folder with another cache of the same name, such as that of an earlier run, which is read
    only.
    """

    def __init__(self, folder: Path, name: str, source: Path | None = None) -> None:
        self._log = JsonLinesLog(folder, name)
        # The own file comes last, because its values count before those of the other file.
        rows = [*(read_log(source / name) if source else ()), *self._log.rows]
        self._values = {reading.text_under(row, "key", where): row.get("value") for where, row in rows}
        self._under_way: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()

    def get(self, key: str, compute: Callable[[], Any]) -> Any:
        """Return the value of a key; if the key is not in the cache, call `compute` and store its result.

        If several threads ask for the same missing key, one thread computes the value, and the others wait.
        """
        with self._lock:
            if key in self._values:
                return self._values[key]
            # A lock for each key: a slow computation must not keep other keys waiting.
            own = self._under_way.setdefault(key, threading.Lock())
        with own:
            if key not in self._values:
                value = compute()
                self._log.append({"key": key, "value": value})
                self._values[key] = value
            return self._values[key]

    def close(self) -> None:
        """Close the file of the cache."""
        self._log.close()
