"""The rewrite rule remove-comments for Java."""

from __future__ import annotations

from collections.abc import Iterator

from simllm.perturb.code.code_unit import CodeUnit, Site, SkippedSite
from simllm.perturb.code.java.java_parsing import JavaUnit, find_nodes
from simllm.perturb.code.source_edits import Edit


def remove_comments(unit: CodeUnit) -> Iterator[Site | SkippedSite]:
    """Find all comments, and make the edits that remove them.

    If nothing but the comment is on a line, the whole line is removed.

    Yields:
        For each comment, a `Site`: a place in the code, with the edit that rewrites it. It is always safe to
        remove a comment. Therefore, no `SkippedSite` (a place that is unsafe to rewrite) is yielded.
    """
    assert isinstance(unit, JavaUnit)
    for node in find_nodes(unit.root, "line_comment", "block_comment"):
        yield Site(node, (_removal(unit.text[: unit.source.end], node.start_byte, node.end_byte),))


def _removal(text: bytes, start: int, end: int) -> Edit:
    """Return the edit that removes a comment.

    If the comment is at the end of a line, the white space before the comment is removed, too. If nothing
    else is on the line, the whole line is removed.

    Args:
        text: The source.
        start: The index of the first byte of the comment.
        end: The index of the byte after the comment.
    """
    line = text.rfind(b"\n", 0, start) + 1
    stop = text.find(b"\n", end) + 1 or len(text)
    before, after = text[line:start], text[end:stop]
    if not after.strip():  # the end of a line
        if not before.strip():
            return Edit(line, stop, ())
        return Edit(start - (len(before) - len(before.rstrip())), end, ())
    touches = not before[-1:].isspace() and not after[:1].isspace() and before.strip() != b""
    return Edit(start, end, (b" ",) if touches else ())
