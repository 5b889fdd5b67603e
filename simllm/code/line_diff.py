"""Line edits: lists of the lines that differ between two versions of code."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher


def line_edit(source: Sequence[str], target: Sequence[str]) -> list[str]:
    """List the lines that differ between two versions of code: "-" marks deleted and "+" inserted lines.

    `difflib.SequenceMatcher`, without its heuristic for frequent lines, finds the blocks of equal lines.

    Args:
        source: The lines before the change.
        target: The lines after the change.

    Returns:
        The differing lines, block by block in the order of the code. In each block of neighbouring lines, the
        deleted lines come first, with "-" before each line. Then come the inserted lines, with "+".
    """
    edit = []
    for tag, i, j, k, m in SequenceMatcher(None, source, target, autojunk=False).get_opcodes():
        if tag != "equal":
            edit += [f"-{line}" for line in source[i:j]] + [f"+{line}" for line in target[k:m]]
    return edit
