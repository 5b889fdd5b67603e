"""Files of remote repositories, and their formats."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

Row = dict[str, Any]  # an object of a JSON-lines file


@dataclass(frozen=True)
class SourceFile:
    """One file of a repository."""

    path: PurePosixPath  # inside the repository
    data: bytes

    @property
    def text(self) -> str:
        """The content as text; bytes that are not UTF-8 become U+FFFD."""
        return self.data.decode("utf-8", "replace").removeprefix("\ufeff")

    def lines(self) -> list[str]:
        r"""Return the lines, which end with `\n` or `\r\n`."""
        lines = self.text.split("\n")
        if not lines[-1]:
            del lines[-1]
        return [line.removesuffix("\r") for line in lines]

    def columns(self) -> Iterator[list[str]]:
        """Yield the tab-separated columns of each line; quotes are not special."""
        return (line.split("\t") for line in self.lines())

    def json(self) -> Any:
        """Return the value in a JSON file."""
        return json.loads(self.text)

    def csv(self) -> Iterator[list[str]]:
        """Yield the rows of a file of comma-separated values."""
        return csv.reader(io.StringIO(self.text, newline=""))
