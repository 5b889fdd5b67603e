"""A file of a repository, and methods that parse common formats."""

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
    """A file of a repository, with its content; `path` is in the repository."""

    path: PurePosixPath
    data: bytes

    @property
    def text(self) -> str:
        """The content as text; bytes that are not UTF-8 become U+FFFD."""
        # Bytes that are not UTF-8 become U+FFFD.
        return self.data.decode("utf-8", "replace").removeprefix("\ufeff")

    def lines(self) -> list[str]:
        r"""Split the text into lines, without the `\n` or `\r\n` at their ends."""
        # Not splitlines: that would also split at characters such as U+2028, inside of texts.
        lines = self.text.split("\n")
        if not lines[-1]:
            del lines[-1]
        return [line.removesuffix("\r") for line in lines]

    def columns(self) -> Iterator[list[str]]:
        """Yield a list of columns for each line; tabs separate the columns, and quotation marks are kept."""
        return (line.split("\t") for line in self.lines())

    def json(self) -> Any:
        """Parse the content as JSON."""
        return json.loads(self.text)

    def csv(self) -> Iterator[list[str]]:
        """Parse the content as comma-separated values, and yield its rows."""
        return csv.reader(io.StringIO(self.text, newline=""))
