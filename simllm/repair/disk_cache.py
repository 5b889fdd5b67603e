"""A cache on disk for values that take a long time to compute."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from simllm.io import read_json_lines
from simllm.repair.json_lines_log import JsonLinesLog, read_log


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
