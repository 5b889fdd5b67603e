"""A cache on disk for values that take long to compute."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from simllm.io import files
from simllm.repair.json_lines_log import JsonLinesLog, read_log


class KeptValues:
    """Cache of JSON values by key, in a file of JSON lines. Several threads may use it at the same time.

    Args:
        folder: The folder of a run, which simllm wrote.
        name: The name of the file.
        source: The folder of another run; values in its cache are used, too.

    Raises:
        InputError: A file is damaged, or cannot be written.
    """

    def __init__(self, folder: Path, name: str, source: Path | None = None) -> None:
        self._log = JsonLinesLog(folder, name)
        rows = [*(read_log(source / name) if source else ()), *self._log.rows]
        self._values = {files.text_under(row, "key", where): row.get("value") for where, row in rows}
        self._under_way: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()

    def get(self, key: str, compute: Callable[[], Any]) -> Any:
        """Return the value of a key; compute and keep it if it is new.

        Threads that ask for the same new key wait for one computation.
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
        """Close the file."""
        self._log.close()
