"""The rule remove-comments for Java."""

from __future__ import annotations

from collections.abc import Iterator

from simllm.perturb.code.code_unit import CodeUnit, Site, SkippedSite
from simllm.perturb.code.java.java_parsing import JavaUnit, find_nodes
from simllm.perturb.code.source_edits import Edit


def remove_comments(unit: CodeUnit) -> Iterator[Site | SkippedSite]:
    """Find all comments; a line that holds nothing else is removed as a whole."""
    assert isinstance(unit, JavaUnit)
    for node in find_nodes(unit.root, "line_comment", "block_comment"):
        yield Site(node, (_removal(unit.text[: unit.source.end], node.start_byte, node.end_byte),))


def _removal(text: bytes, start: int, end: int) -> Edit:
    """Return the edit that removes a comment, and the white space before it at the end of a line."""
    line = text.rfind(b"\n", 0, start) + 1
    stop = text.find(b"\n", end) + 1 or len(text)
    before, after = text[line:start], text[end:stop]
    # The comment is at the end of a line.
    if not after.strip():
        if not before.strip():
            return Edit(line, stop, ())
        return Edit(start - (len(before) - len(before.rstrip())), end, ())
    # `int/**/x` must not become `intx`.
    touches = not before[-1:].isspace() and not after[:1].isspace() and before.strip() != b""
    return Edit(start, end, (b" ",) if touches else ())
