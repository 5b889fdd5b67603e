"""Records on disk: JSON objects that are appended to a file, and a cache of values in such a file."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from simllm.errors import InputError
from simllm.io import read_json_lines
from simllm.io.output_folder import OutputFolder


class JsonLinesLog:
    """A file of JSON lines to which several threads append.

    If a killed process left an unfinished last line, this line is removed when the file is opened again.

    Args:
        folder: The folder of the file. simllm must have made it, because simllm adds files only to its own
            folders.
        name: The name of the file.
        is_synced: Whether `append` waits until the line is on the disk. If false, the operating system writes
            the line later. Then a power failure may lose the last lines, but a killed process loses nothing.

    Attributes:
        rows: A pair for each object that was in the file when it was opened: the object's location for error
            messages, such as "FILE, line 3"; and the object.

    Raises:
        InputError: The file is damaged, or cannot be written.
    """

    def __init__(self, folder: Path, name: str, is_synced: bool = False) -> None:
        file = folder / name
        if name not in OutputFolder(folder).check_addition(name) or not file.exists():
            OutputFolder(folder).write(name, "")
        try:
            with file.open("rb+") as data:
                content = data.read()
                data.truncate(content.rfind(b"\n") + 1)
            self.rows = read_log(file)
            self._file = file.open("ab")
        except OSError as error:
            raise InputError(f"{file}: cannot be written ({error.strerror})") from None
        self._name, self._is_synced = file, is_synced
        self._writing, self._syncing = threading.Lock(), threading.Lock()
        self._written = self._synced = 0

    def append(self, row: dict[str, Any]) -> None:
        """Append an object as a line.

        If the log was opened with `is_synced`, wait until the line is on the disk. Threads that append at the
        same time share one wait.

        Raises:
            InputError: The file cannot be written.
        """
        line = json.dumps(row, separators=(",", ":")).encode() + b"\n"
        try:
            with self._writing:
                self._file.write(line)
                self._file.flush()
                self._written += 1
                own = self._written
            with self._syncing:
                if self._is_synced and self._synced < own:
                    target = self._written
                    os.fsync(self._file.fileno())
                    self._synced = target
        except OSError as error:
            raise InputError(f"{self._name}: cannot be written ({error.strerror})") from None

    def close(self) -> None:
        """Close the file. Lines that `append` failed to write are written first, if there are any.

        Raises:
            InputError: The lines cannot be written.
        """
        try:
            self._file.close()
        except OSError as error:
            raise InputError(f"{self._name}: cannot be written ({error.strerror})") from None


def read_log(file: Path) -> list[tuple[str, dict[str, Any]]]:
    """Read the objects in a file of JSON lines.

    Returns:
        A pair for each object: its location for error messages, such as "FILE, line 3"; and the object. The
        list is empty if the file does not exist.

    Raises:
        InputError: The file cannot be read, or a line is not a JSON object.
    """
    return list(read_json_lines.objects(file)) if file.exists() else []


class KeptValues:
    """Cache of JSON values by key, in a file of JSON lines. Several threads may use it at the same time.

    Args:
        folder: The folder of the cache file. simllm must have made it, because simllm adds files only to its
            own folders.
        name: The name of the cache file.
        source: A folder with another cache file of the same name, such as the folder of an earlier run. The
            values in that file are used, too, but that file is not changed. None if there is no other cache.

    Raises:
        InputError: A file is damaged, or cannot be written.
    """

    def __init__(self, folder: Path, name: str, source: Path | None = None) -> None:
        self._log = JsonLinesLog(folder, name)
        rows = [*(read_log(source / name) if source else ()), *self._log.rows]
        self._values = {
            read_json_lines.text_under(row, "key", where): row.get("value") for where, row in rows
        }
        self._under_way: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()

    def get(self, key: str, compute: Callable[[], Any]) -> Any:
        """Return the value of a key; if the key is not in the cache, call `compute` and store its result.

        If several threads ask for the same missing key, one thread computes the value, and the others wait.
        """
        with self._lock:
            if key in self._values:
                return self._values[key]
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
