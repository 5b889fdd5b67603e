"""The identity of cleaned texts: a hash of their words, without punctuation."""

from __future__ import annotations

import hashlib
import re


def words(text: str) -> list[str]:
    """Return the words of a cleaned text, without its punctuation."""
    return re.findall("[a-z0-9]+", text)


def identity(text: str) -> bytes:
    """Return an 8-byte hash of the words of a cleaned text."""
    return hashlib.blake2b(" ".join(words(text)).encode(), digest_size=8).digest()
