"""The rule remove-comments for Python, which keeps comments that may affect how a program runs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from simllm.perturb.code.code_unit import CodeUnit, Site, SkippedSite
from simllm.perturb.code.python.python_parsing import captures, line_end, line_start, starts_line
from simllm.perturb.code.source_edits import Edit

# Names an interpreter, or an encoding, which only a comment in the first two lines can do (PEP 263).
_HEAD_COMMENT = re.compile(rb"#!|#.*?coding[:=]")
_ENCODING = re.compile(rb"\n[ \t\f]*#.*?coding[:=]")


def remove_comments(unit: CodeUnit) -> Iterator[Site | SkippedSite]:
    """Find all comments; a line that holds nothing else is removed as a whole."""
    found = captures(unit, "(comment) @comment (interpolation) @inside")
    strings = [(node.start_byte, node.end_byte) for node in found.get("inside", [])]
    for node in reversed(found.get("comment", [])):
        start, end = line_start(unit, node.start_byte), line_end(unit, node.start_byte)
        is_head = node.start_point.row < 2
        if is_head and _HEAD_COMMENT.match(unit.text_of(node)):
            yield SkippedSite(node, "the comment names a program or an encoding")
        elif is_head and _ENCODING.search(unit.text):
            # A later comment can rise to the first two lines when lines above it are removed.
            yield SkippedSite(node, "a later comment would name an encoding")
        elif any(first < node.start_byte < last for first, last in strings):
            # Since Python 3.12, an f-string may hold a comment (PEP 701).
            yield SkippedSite(node, "the comment stands in a string")
        elif starts_line(unit, node) and unit.text.startswith((b"\r\n", b"\n"), end):
            end = unit.text.index(b"\n", end) + 1
            yield Site(node, (Edit(start, end, ()),))
        else:
            code = unit.text[start : node.start_byte]
            yield Site(node, (Edit(start + len(code.rstrip(b" \t\f")), end, ()),))
