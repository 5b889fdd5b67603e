"""Line edits: lists of the lines that differ between two versions of code."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from difflib import Match, SequenceMatcher

LONGEST = 10.0  # seconds of processor time; a thousandth is enough for code
_MOST_PAIRS = 20_000_000  # of equal lines, which one search for the longest block compares


def line_edit(source: Sequence[str], target: Sequence[str]) -> list[str]:
    """List the lines that differ between two versions of code, block by block in the order of the code.

    In each block of neighbouring lines, the deleted lines come first, with "-" before each line; then come
    the inserted lines, with "+". Lines that repeat so often that the comparison takes too long are a
    TimeoutError.
    """
    edit = []
    for i, j, k, m in _blocks(source, target):
        edit += [f"-{line}" for line in source[i:j]] + [f"+{line}" for line in target[k:m]]
    return edit


def count_hunks(source: Sequence[str], target: Sequence[str]) -> int:
    """Count the blocks of neighbouring lines that differ; TimeoutError as `line_edit`."""
    return len(_blocks(source, target))


def _blocks(source: Sequence[str], target: Sequence[str]) -> list[tuple[int, int, int, int]]:
    """Return the blocks that differ: the ends of each in the source and in the target."""
    if source == target:
        return []
    counts = Counter(target)
    if sum(counts[line] for line in source) > _MOST_PAIRS:
        raise TimeoutError("too many equal lines to compare")
    # The heuristic for frequent lines (autojunk) would ignore lines such as "}" in long files.
    matcher = _Matcher(None, source, target, autojunk=False)
    return [(i, j, k, m) for tag, i, j, k, m in matcher.get_opcodes() if tag != "equal"]


class _Matcher(SequenceMatcher[str]):
    """A `SequenceMatcher` that raises `TimeoutError` after `LONGEST` seconds."""

    _end: float | None = None

    def find_longest_match(
        self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None
    ) -> Match:
        """Find a block of equal lines, unless the time is over."""
        now = time.process_time()
        self._end = self._end or now + LONGEST
        if now > self._end:
            raise TimeoutError("comparing lines takes too long")
        return super().find_longest_match(alo, ahi, blo, bhi)
