"""Search for the names of parameters in the docstring of a Python function."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from simllm.perturb.code.code_unit import CodeUnit
from simllm.perturb.code.python.python_parsing import field
from simllm.perturb.code.source_edits import Span

_HEADING = re.compile(rb"[ \t]*(?:Args|Arguments|Parameters):[ \t]*")
_UNDERLINED = re.compile(rb"(?<=\n)([ \t]*)(?:Other )?Parameters[ \t]*\r?\n\1-{3,}[ \t]*\r?(?=\n)")


def docstring(function: Node) -> Node | None:
    """Return a function's docstring, which may be several adjacent strings; None if there is none."""
    first = next(child for child in field(function, "body").named_children if child.type != "comment")
    node = first.children[0] if first.type == "expression_statement" else first
    while node.type == "parenthesized_expression":
        node = next(child for child in node.named_children if child.type != "comment")
    return node if node.type in ("string", "concatenated_string") else None


def parameter_mentions(unit: CodeUnit, function: Node, name: str) -> Iterator[Span]:
    """Yield the span of each mention of a parameter where a docstring describes it.

    The styles are `:param x:` (Sphinx), a list under `Args:` (Google), and a list under the underlined
    heading `Parameters` (NumPy).
    """
    node = docstring(function)
    if node is None:
        return
    text, word = unit.text_of(node), re.escape(name.encode())
    # A set, because a docstring that mixes styles may match twice at one place.
    for start, end in {*_fields(text, word), *_entries(text, word), *_underlined(text, word)}:
        yield Span(node.start_byte + start, node.start_byte + end)


def _fields(text: bytes, word: bytes) -> Iterator[tuple[int, int]]:
    """Yield the positions of an escaped name in Sphinx style, such as `:param x:`."""
    for match in re.finditer(rb":(?:param|type)[ \t]+(?:[\w.]+[ \t]+)?(" + word + rb"):", text):
        yield match.span(1)


def _underlined(text: bytes, word: bytes) -> Iterator[tuple[int, int]]:
    """Yield the positions of an escaped name in NumPy style, such as `x : int` under a heading."""
    for heading in _UNDERLINED.finditer(text):
        indent = heading[1]
        entry = rb"\n%s(?:\*{0,2}\w+,[ \t]*)*\*{0,2}(%s)(?=[ \t]*[,:\r\n])" % (indent, word)
        rest = text[heading.end() :]
        # The list ends at the next underlined heading with the same indentation.
        next_heading = re.search(rb"\n%s\w.*\r?\n%s---" % (indent, indent), rest)
        for match in re.finditer(entry, rest[: next_heading.start()] if next_heading else rest):
            yield heading.end() + match.start(1), heading.end() + match.end(1)


def _entries(text: bytes, word: bytes) -> Iterator[tuple[int, int]]:
    """Yield the positions of an escaped name in Google style, such as `x:` under `Args:`."""
    entry = re.compile(rb"[ \t]*\*{0,2}(" + word + rb")(?:[ \t]*\([^()]*\))?:")
    # Widths of the indentation; -1 outside a list.
    at, heading, entries = 0, -1, -1
    for line in text.splitlines(keepends=True):
        width = len(line) - len(line.lstrip(b" \t"))
        if _HEADING.fullmatch(line.rstrip(b"\r\n")):
            heading, entries = width, -1
        elif line.strip() and width <= heading:
            # A line that is not indented below the heading ends the list.
            heading = -1
        elif line.strip() and heading >= 0:
            # The first line of a list has the indentation of all names; deeper lines are descriptions.
            entries = width if entries < 0 else entries
            if width == entries and (named := entry.match(line)):
                yield at + named.start(1), at + named.end(1)
        at += len(line)
