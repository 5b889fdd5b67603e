"""Line edits: lists of the lines that differ between two versions of code."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher


def line_edit(source: Sequence[str], target: Sequence[str]) -> list[str]:
    """List the lines that differ between two versions of code, block by block in the order of the code.

    In each block of neighbouring lines, the deleted lines come first, with "-" before each line; then come
    the inserted lines, with "+".
    """
    edit = []
    # The heuristic for frequent lines (autojunk) would ignore lines such as "}" in long files.
    for tag, i, j, k, m in SequenceMatcher(None, source, target, autojunk=False).get_opcodes():
        if tag != "equal":
            edit += [f"-{line}" for line in source[i:j]] + [f"+{line}" for line in target[k:m]]
    return edit
