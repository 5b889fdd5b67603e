"""Files as their authors published them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from simllm.errors import InputError

Row = dict[str, Any]  # an object of a JSON-lines file


@dataclass(frozen=True)
class SourceFile:
    """One file of a repository."""

    path: PurePosixPath  # inside the repository
    data: bytes

    @property
    def text(self) -> str:
        """The content as text; raises InputError if it is not UTF-8."""
        try:
            return self.data.decode("utf-8", "replace").removeprefix("\ufeff")
        except UnicodeDecodeError as error:
            raise InputError(f"{self.path}: not UTF-8 ({error.reason})") from None

    def lines(self) -> list[str]:
        """The lines; only line feeds, alone or after a carriage return, end a line."""
        lines = self.text.split("\n")
        if not lines[-1]:
            del lines[-1]
        return [line.removesuffix("\r") for line in lines]

    def columns(self) -> Iterator[list[str]]:
        """Yield the tab-separated columns of each line; quotes have no meaning."""
        return (line.split("\t") for line in self.lines())

    def json(self) -> Any:
        """The value in a JSON file."""
        return json.loads(self.text)

    def csv(self) -> Iterator[list[str]]:
        """Yield the rows of a file of comma-separated values."""
        return csv.reader(io.StringIO(self.text, newline=""))
