"""File names as printable text, also those with control characters or bytes that are not UTF-8."""

from __future__ import annotations

import os


def printable(name: str | os.PathLike[str]) -> str:
    """Return a file name with U+FFFD for bytes that are not UTF-8, and escaped control characters."""
    text = os.fsencode(name).decode("utf-8", "replace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
