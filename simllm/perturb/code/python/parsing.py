"""Parsed Python code, and helpers to find nodes, lines and tokens in it."""

from __future__ import annotations

import io
import re
import sys
import tokenize
import unicodedata
import warnings
from functools import cache

import tree_sitter_python
from tree_sitter import Language, Node, Parser, Query, QueryCursor

from simllm.errors import InputError
from simllm.perturb.code.edits import Span
from simllm.perturb.code.units import CodeUnit

_GRAMMAR = Language(tree_sitter_python.language())
_FRAME = b"if 1:\n"  # put before an indented method, to make it a file
_FIRST_CODE = re.compile(rb"(?:[ \t\f]*(?:#[^\n]*)?\r?\n)*([ \t]+)[^\s#]")
_REST = re.compile(rb"(?:[ \t\f;]|\\\r?\n)*")
_LONE_RETURN = re.compile(rb"\r(?!\n)")


def parse(source: bytes, is_file: bool = False, around: bytes = b"") -> CodeUnit:
    """Parse a Python file or, unless `is_file`, a single function or method, which may be indented.

    `around` is code before the function; it becomes a part of the frame. Other encodings than UTF-8 and
    syntax errors raise `InputError`; its message begins with the line number.
    """
    _check_encoding(source)
    # Python does not allow an indented first line.
    frame = _FRAME if not is_file and is_indented(source) else b""
    text = frame + source
    frame_lines = frame.count(b"\n")
    _check_syntax(text, frame_lines)
    root = Parser(_GRAMMAR).parse(text).root_node
    if (other := _other_syntax(text, root)) is not None:
        line = text.count(b"\n", 0, other) + 1 - frame_lines
        raise InputError(f"line {line}: the syntax is valid, but tree-sitter does not know it")
    statements = children(root)
    if frame:
        block = statements[0].child_by_field_name("consequence") if len(statements) == 1 else None
        statements = children(block) if block else []
    is_function = not is_file and len(statements) == 1 and _is_function(statements[0])
    if frame and not is_function:
        line = source.count(b"\n", 0, source.index(source.lstrip()[:1])) + 1
        raise InputError(f"line {line}: the code is indented, but is not a single function")
    if around:
        root, text = _parse_around(around + b"\n", frame, source)
    return CodeUnit("python", text, Span(len(text) - len(source), len(text)), root, is_function)


def is_indented(source: bytes) -> bool:
    """Return whether the first statement of a source is indented, as that of a method is."""
    return _FIRST_CODE.match(source) is not None


def _parse_around(around: bytes, frame: bytes, source: bytes) -> tuple[Node, bytes]:
    """Parse code that can be parsed alone together with the code before it; return the root and the text."""
    text = around + frame + source
    try:
        _check_encoding(around)
        _check_syntax(text, 0)
    except InputError as error:
        raise InputError(f"line 1: the code under around cannot be parsed with it ({error})") from None
    root = Parser(_GRAMMAR).parse(text).root_node
    if _other_syntax(text, root) is not None:
        raise InputError(
            "line 1: the syntax of the code under around is valid, but tree-sitter does not know it"
        )
    return root, text


def _check_encoding(source: bytes) -> None:
    """Reject sources that are not encoded in UTF-8, or name another encoding in a comment."""
    try:
        encoding, lines = tokenize.detect_encoding(io.BytesIO(source).readline)
        source.decode("utf-8")
    except UnicodeDecodeError as error:
        line = source.count(b"\n", 0, error.start) + 1
        raise InputError(f"line {line}: the code is not valid UTF-8") from None
    except SyntaxError as error:
        raise InputError(f"line 1: {error}") from None
    if encoding not in ("utf-8", "utf-8-sig"):
        raise InputError(f"line {len(lines)}: the encoding is {encoding}, expected UTF-8")


def _check_syntax(text: bytes, frame_lines: int) -> None:
    """Reject code that CPython cannot compile; line numbers in messages leave out the `frame_lines`."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # tree-sitter accepts much that Python rejects, such as `return` outside a function.
            # `dont_inherit` keeps the future imports of this module out.
            compile(text, "<code>", "exec", dont_inherit=True)
    except SyntaxError as error:
        line = max((error.lineno or 1) - frame_lines, 1)
        # Each version of Python has its own syntax: f-strings nest quotes since 3.12, for example.
        version = ".".join(map(str, sys.version_info[:2]))
        raise InputError(f"line {line}: {error.msg} (read by Python {version})") from None
    except (RecursionError, MemoryError):
        raise InputError("line 1: the code is nested too deeply") from None
    except ValueError as error:
        # The code has a null byte.
        line = text.count(b"\n", 0, max(text.find(b"\0"), 0)) + 1 - frame_lines
        raise InputError(f"line {line}: {error}") from None


def _other_syntax(text: bytes, root: Node) -> int | None:
    """Return the first byte that CPython can parse, but tree-sitter cannot; None if there is none."""
    # A lone carriage return ends a line for CPython, but not for tree-sitter.
    if match := _LONE_RETURN.search(text):
        return match.start()
    if not root.has_error:
        return None
    nodes = [root]
    while nodes:
        node = nodes.pop()
        if node.is_error or node.is_missing:
            return node.start_byte
        nodes += [child for child in reversed(node.children) if child.has_error]
    return root.start_byte


def _is_function(node: Node) -> bool:
    """Return whether a statement defines a function, with or without decorators."""
    definition = node.child_by_field_name("definition") or node
    return definition.type == "function_definition"


@cache
def _query(patterns: str) -> Query:
    return Query(_GRAMMAR, patterns)


def captures(unit: CodeUnit, patterns: str) -> dict[str, list[Node]]:
    """Return the syntax nodes of each capture of a tree-sitter query, by name without `@`.

    Nodes are in the order of the source, outer before inner. A capture without matches is missing.
    """
    found = QueryCursor(_query(patterns)).captures(unit.root)
    return {
        name: sorted(nodes, key=lambda node: (node.start_byte, -node.end_byte))
        for name, nodes in found.items()
    }


def taken_names(unit: CodeUnit) -> frozenset[str]:
    """Return all identifiers in the code, including attributes, which a new name must avoid."""
    names = {unit.text_of(node).decode() for node in captures(unit, "(identifier) @name").get("name", [])}
    # Python treats identifiers with the same NFKC form as equal.
    return frozenset(names | {unicodedata.normalize("NFKC", name) for name in names})


def required(node: Node, name: str) -> Node:
    """Return the child with a given role, such as "body"; raise `ValueError` if there is none."""
    child = node.child_by_field_name(name)
    if child is None:
        raise ValueError(f"a {node.type} without {name}")
    return child


def children(node: Node) -> list[Node]:
    """Return the children without comments, keywords, operators and punctuation marks."""
    return [child for child in node.named_children if child.type != "comment"]


def token(node: Node, text: str) -> Node:
    """Return the first token with a given text, such as ":", among the children of a syntax node."""
    return next(child for child in node.children if child.type == text)


def line_start(unit: CodeUnit, byte: int) -> int:
    """Return the first byte of the line that contains a given byte."""
    return unit.text.rfind(b"\n", 0, byte) + 1


def line_end(unit: CodeUnit, byte: int) -> int:
    """Return the end, without the line ending, of the line that contains a given byte."""
    end = unit.text.find(b"\n", byte)
    if end < 0:
        return len(unit.text)
    return end - 1 if unit.text[end - 1 : end] == b"\r" else end


def statement_end(unit: CodeUnit, statement: Node) -> int:
    """Return the end, without the line ending, of the last line of a statement.

    A comment, a semicolon, or a line that a backslash continues belongs to the statement.
    """
    rest = _REST.match(unit.text, statement.end_byte)
    return line_end(unit, rest.end() if rest else statement.end_byte)


def starts_line(unit: CodeUnit, node: Node) -> bool:
    """Return whether a syntax node is the first one on a logical line."""
    start = line_start(unit, node.start_byte)
    before = unit.text[:start].rstrip(b"\r\n") if start else b""
    # `\xef\xbb\xbf` is a byte order mark.
    return not unit.text[start : node.start_byte].strip(b" \t\f\xef\xbb\xbf") and not before.endswith(b"\\")


def is_inline(unit: CodeUnit, colon: Node, suite: Node) -> bool:
    """Return whether a body stands on the same line as the colon of its head, as in `if x: return`."""
    between = unit.text[colon.end_byte : suite.start_byte]
    return b"\n" not in re.sub(rb"\\\r?\n", b"", between)


def join(unit: CodeUnit, *parts: bytes | Span) -> tuple[bytes | Span, ...]:
    """Add spaces between parts, bytes or spans, where words or braces would merge; leave out empty parts."""
    joined: list[bytes | Span] = []
    last = b""
    for part in parts:
        text = part if isinstance(part, bytes) else unit.text[part.start : part.end]
        if not text:
            continue
        # A quotation mark counts, because a name such as `f` before it would become a prefix of the string.
        is_word = _is_word(last[-1:]) and (_is_word(text[:1]) or text[:1] in (b'"', b"'"))
        # In an f-string, `{{` is an escaped brace.
        if last and (is_word or last[-1:] + text[:1] in (b"{{", b"}}")):
            joined.append(b" ")
        joined.append(part)
        last = text
    return tuple(joined)


def pad(unit: CodeUnit, start: int, end: int, *parts: bytes | Span) -> tuple[bytes | Span, ...]:
    """Add spaces to a replacement, so that its parts merge neither with each other nor with the source.

    `start` and `end` are the range that is replaced.
    """
    # One byte of the source on each side is enough to see what would merge; `join` needs them as parts, and
    # they are then cut off.
    before, after = Span(max(start - 1, 0), start), Span(end, min(end + 1, len(unit.text)))
    joined = join(unit, before, *parts, after)
    return joined[start > 0 : len(joined) - (after.start < after.end)]


def _is_word(character: bytes) -> bool:
    """Return whether a byte can be part of a name or number."""
    return character.isalnum() or character == b"_" or character >= b"\x80"


class Lines:
    """The lines of parsed code; rows count from 0.

    Attributes:
        starts: The first byte of each line.
    """

    def __init__(self, unit: CodeUnit) -> None:
        self._unit = unit
        self.starts = [0]
        at = unit.text.find(b"\n")
        while at >= 0:
            self.starts.append(at + 1)
            at = unit.text.find(b"\n", at + 1)
        self._in_strings: set[int] = set()
        for node in captures(unit, "(string) @string").get("string", []):
            self._in_strings.update(range(node.start_point.row + 1, node.end_point.row + 1))

    def text(self, row: int) -> bytes:
        """Return the text of a line without its ending."""
        end = self.starts[row + 1] if row + 1 < len(self.starts) else len(self._unit.text)
        return self._unit.text[self.starts[row] : end].rstrip(b"\r\n")

    def indent(self, row: int) -> bytes:
        """Return the white space at the beginning of a line."""
        line = self.text(row)
        return line[: len(line) - len(line.lstrip(b" \t\f"))]

    def may_move(self, row: int) -> bool:
        """Return whether a line can be indented without changing the meaning of the code."""
        # The white space at the beginning of a line inside a string belongs to the string. An empty line
        # needs no indentation.
        return row not in self._in_strings and bool(self.text(row).strip())
