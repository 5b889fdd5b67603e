"""Two rewrite rules for Python that are not applied by default: remove-comments and dead-code.

The rule dead-code inserts `if False: pass`, which is never run, into functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from simllm.perturb.code.code_unit import CodeUnit, Site, SkippedSite
from simllm.perturb.code.python.python_docstrings import docstring
from simllm.perturb.code.python.python_parsing import (
    captures,
    field,
    is_inline,
    line_end,
    line_start,
    starts_line,
    token,
)
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


def add_dead_code(unit: CodeUnit) -> Iterator[Site | SkippedSite]:
    """Find all functions, and make the edits that insert `if False: pass` before the first statement.

    If a function has a docstring, the code is inserted after the docstring.

    Yields:
        A `Site` with the edit for each function that can be edited. A `SkippedSite` with the reason for each
        other function, such as one whose body is only a docstring.
    """
    for function in reversed(captures(unit, "(function_definition) @function").get("function", [])):
        body = field(function, "body")
        statements = [child for child in body.named_children if child.type != "comment"]
        if is_inline(unit, token(function, ":"), statements[0]):
            yield SkippedSite(function, "the body stands in the line of the head")
            continue
        first = statements[0]
        if docstring(function) is not None:
            if len(statements) == 1:
                yield SkippedSite(function, "the body is a docstring")
                continue
            first = statements[1]
        if not starts_line(unit, first):
            yield SkippedSite(function, "the first statement does not begin a line")
            continue
        indent = unit.indent_of(first.start_byte)
        step = indent.removeprefix(unit.indent_of(function.start_byte)) or b"    "
        lines = (b"if False:", indent + step + b"pass", indent)
        yield Site(function, (Edit(first.start_byte, first.start_byte, (unit.newline.join(lines),)),))
