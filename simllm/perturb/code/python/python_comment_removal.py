"""The rewrite rule remove-comments for Python, which keeps comments that may affect how a program runs.

In the first two lines, a comment stays if it names an interpreter (`#!/bin/python`) or the encoding of the
file. It also stays if a later comment would name the encoding once lines are removed. A comment inside an
f-string always stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from simllm.perturb.code.code_unit import CodeUnit, Site, SkippedSite
from simllm.perturb.code.python.python_parsing import captures, line_end, line_start, starts_line
from simllm.perturb.code.source_edits import Edit

_HEAD_COMMENT = re.compile(rb"#!|#.*?coding[:=]")  # a program or an encoding, in the first two lines
_ENCODING = re.compile(rb"\n[ \t\f]*#.*?coding[:=]")


def remove_comments(unit: CodeUnit) -> Iterator[Site | SkippedSite]:
    """Find all comments, and yield the edit that removes each one.

    If a line holds only a comment, the whole line is removed.

    Yields:
        A `Site` with the edit for each comment that can be removed. A `SkippedSite` with the reason for each
        comment that must stay, such as `#!/bin/python`.
    """
    found = captures(unit, "(comment) @comment (interpolation) @inside")
    strings = [(node.start_byte, node.end_byte) for node in found.get("inside", [])]
    for node in reversed(found.get("comment", [])):
        start, end = line_start(unit, node.start_byte), line_end(unit, node.start_byte)
        is_head = node.start_point.row < 2
        if is_head and _HEAD_COMMENT.match(unit.text_of(node)):
            yield SkippedSite(node, "the comment names a program or an encoding")
        elif is_head and _ENCODING.search(unit.text):
            yield SkippedSite(node, "a later comment would name an encoding")
        elif any(first < node.start_byte < last for first, last in strings):
            yield SkippedSite(node, "the comment stands in a string")
        elif starts_line(unit, node) and unit.text.startswith((b"\r\n", b"\n"), end):
            end = unit.text.index(b"\n", end) + 1
            yield Site(node, (Edit(start, end, ()),))
        else:
            code = unit.text[start : node.start_byte]
            yield Site(node, (Edit(start + len(code.rstrip(b" \t\f")), end, ()),))
