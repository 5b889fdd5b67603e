"""Search for the names of parameters in the docstring of a Python function.

If a parameter is renamed in the code, its name in the docstring must change, too.
"""

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
    """Return the syntax node of a function's docstring; None if the function has no docstring.

    The docstring may be one string, or several adjacent strings, which Python concatenates.
    """
    first = next(child for child in field(function, "body").named_children if child.type != "comment")
    node = first.children[0] if first.type == "expression_statement" else first
    while node.type == "parenthesized_expression":
        node = next(child for child in node.named_children if child.type != "comment")
    return node if node.type in ("string", "concatenated_string") else None


def parameter_mentions(unit: CodeUnit, function: Node, name: str) -> Iterator[Span]:
    """Find the name of a parameter in those parts of a docstring that describe parameters.

    Three styles of docstrings are recognized: `:param x:` (Sphinx), a list under `Args:` (Google), and a list
    under the underlined heading `Parameters` (NumPy).

    Args:
        unit: The parsed code.
        function: The definition of the function.
        name: The name of the parameter.

    Yields:
        The range of each occurrence of the name, in bytes of `unit.text`.
    """
    node = docstring(function)
    if node is None:
        return
    text, word = unit.text_of(node), re.escape(name.encode())
    for start, end in {*_fields(text, word), *_entries(text, word), *_underlined(text, word)}:
        yield Span(node.start_byte + start, node.start_byte + end)


def _fields(text: bytes, word: bytes) -> Iterator[tuple[int, int]]:
    """Find the name of a parameter in the fields of a docstring in Sphinx style, such as `:param x:`.

    Args:
        text: The docstring.
        word: The name of the parameter, escaped for use in a regular expression.

    Yields:
        The start and the end of each occurrence, as byte positions in `text`.
    """
    for match in re.finditer(rb":(?:param|type)[ \t]+(?:[\w.]+[ \t]+)?(" + word + rb"):", text):
        yield match.span(1)


def _underlined(text: bytes, word: bytes) -> Iterator[tuple[int, int]]:
    """Find the name of a parameter under the underlined headings of a docstring in NumPy style.

    An example of a line under such a heading is `x : int`.

    Args:
        text: The docstring.
        word: The name of the parameter, escaped for use in a regular expression.

    Yields:
        The start and the end of each occurrence, as byte positions in `text`.
    """
    for heading in _UNDERLINED.finditer(text):
        indent = heading[1]
        entry = rb"\n%s(?:\*{0,2}\w+,[ \t]*)*\*{0,2}(%s)(?=[ \t]*[,:\r\n])" % (indent, word)
        rest = text[heading.end() :]
        next_heading = re.search(rb"\n%s\w.*\r?\n%s---" % (indent, indent), rest)
        for match in re.finditer(entry, rest[: next_heading.start()] if next_heading else rest):
            yield heading.end() + match.start(1), heading.end() + match.end(1)


def _entries(text: bytes, word: bytes) -> Iterator[tuple[int, int]]:
    """Find the name of a parameter under the headings of a docstring in Google style, such as `Args:`.

    Args:
        text: The docstring.
        word: The name of the parameter, escaped for use in a regular expression.

    Yields:
        The start and the end of each occurrence, as byte positions in `text`.
    """
    entry = re.compile(rb"[ \t]*\*{0,2}(" + word + rb")(?:[ \t]*\([^()]*\))?:")
    at, heading, entries = 0, -1, -1  # widths of the indentation, or -1 outside a list
    for line in text.splitlines(keepends=True):
        width = len(line) - len(line.lstrip(b" \t"))
        if _HEADING.fullmatch(line.rstrip(b"\r\n")):
            heading, entries = width, -1
        elif line.strip() and width <= heading:
            heading = -1
        elif line.strip() and heading >= 0:
            entries = width if entries < 0 else entries
            if width == entries and (named := entry.match(line)):
                yield at + named.start(1), at + named.end(1)
        at += len(line)
