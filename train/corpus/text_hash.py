"""Words and hashes of cleaned (lower-case ASCII) texts, for comparisons that ignore punctuation."""

from __future__ import annotations

import hashlib
import re


def words(text: str) -> list[str]:
    """Split a cleaned text into its words, without punctuation."""
    return re.findall("[a-z0-9]+", text)


def identity(text: str) -> bytes:
    """Hash the words of a cleaned text to 8 bytes."""
    return hashlib.blake2b(" ".join(words(text)).encode(), digest_size=8).digest()
