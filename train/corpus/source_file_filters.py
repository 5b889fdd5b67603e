"""Filters that leave out large files, generated files (written by a program) and files of dependencies."""

from __future__ import annotations

import re

# Bytes; larger files are usually data.
LARGEST = 1 << 20
_DEPENDENCIES = {"node_modules", "bower_components", "vendor", "third_party", "site-packages", "__pycache__"}
_GENERATED = re.compile(
    rb"(?m)^\W*(?:[Tt]his (?:file|code|class|module) (?:is|was|has been) (?:an? )?"
    rb"(?:auto(?:matically)?[- ]?)?generated"
    rb"|Code generated|Generated (?:by|from|with|using)\b"
    rb"|A(?i:uto(?:matically)?[- ]?generated)(?: (?:by(?! Eclipse)|from|with|using|file|code)|\W*$|\.)"
    rb"|@generated\b[^(])"
    rb"|\bD(?i:o not) (?i:edit|modify)\b(?:\W*$| (?:this file|manually|by hand|directly))"
)


def is_generated(code: bytes) -> bool:
    """Return whether a remark such as `Do not edit` in the first 2,000 bytes, or long lines, show generated
    code.
    """
    # Over 200 bytes a line on average.
    minified = len(code) > 200 * (code.count(b"\n") + 1)
    return minified or bool(_GENERATED.search(code[:2000]))


def is_skipped_folder(folder: str) -> bool:
    """Return whether a folder is hidden, or has dependencies such as `node_modules`."""
    return folder.startswith(".") or folder in _DEPENDENCIES
