"""Filters that leave source files out of a corpus: large files, generated files, and files of dependencies.

A generated file is a file that a program wrote.
"""

from __future__ import annotations

import re

LARGEST = 1 << 20  # bytes; larger files are usually data
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
    """Return whether a source file is generated code.

    A file counts as generated if its first 2,000 bytes have a remark such as `This file was generated` or `Do
    not edit`. A file also counts as generated if its lines have more than 200 bytes on average.
    """
    minified = len(code) > 200 * (code.count(b"\n") + 1)
    return minified or bool(_GENERATED.search(code[:2000]))


def is_skipped_folder(folder: str) -> bool:
    """Return whether a folder is skipped because of its name.

    Hidden folders, such as `.git`, and folders of dependencies, such as `node_modules`, are skipped.
    """
    return folder.startswith(".") or folder in _DEPENDENCIES
