"""File names as text that can be printed, also if they have bytes that are not UTF-8."""

from __future__ import annotations

import os


def printable(name: str | os.PathLike[str]) -> str:
    """Return a file name as text that can be printed: U+FFFD replaces bytes that are not UTF-8."""
    return os.fsencode(name).decode("utf-8", "replace")
