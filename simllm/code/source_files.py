"""Source files below folders, and which of them people did not write: generated files and dependencies."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from simllm.code.languages.language import LANGUAGE_OF_SUFFIX

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
    """Return whether a remark such as `Do not edit` in the first 2,000 bytes, or long lines, show generated
    code.
    """
    minified = len(code) > 200 * (code.count(b"\n") + 1)  # over 200 bytes a line on average
    return minified or bool(_GENERATED.search(code[:2000]))


def is_skipped_folder(folder: str) -> bool:
    """Return whether a folder is hidden, or has dependencies such as `node_modules`."""
    return folder.startswith(".") or folder in _DEPENDENCIES


def source_files(folder: Path) -> Iterator[Path]:
    """Yield the source files below a folder, sorted by path, without links and skipped folders."""
    for here, inner, names in os.walk(folder):
        inner[:] = sorted(name for name in inner if not is_skipped_folder(name))
        for name in sorted(names):
            file = Path(here, name)
            if file.suffix in LANGUAGE_OF_SUFFIX and file.is_file() and not file.is_symlink():
                yield file
