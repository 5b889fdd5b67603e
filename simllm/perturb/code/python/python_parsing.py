"""Parsing of Python code, and helpers to find lines, statements and tokens in it."""

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
from simllm.perturb.code.code_unit import CodeUnit
from simllm.perturb.code.source_edits import Span

GRAMMAR = Language(tree_sitter_python.language())
_FRAME = b"if 1:\n"  # put before an indented method, to make it a file
_FIRST_CODE = re.compile(rb"(?:[ \t\f]*(?:#[^\n]*)?\r?\n)*([ \t]+)[^\s#]")
_REST = re.compile(rb"(?:[ \t\f;]|\\\r?\n)*")
_LONE_RETURN = re.compile(rb"\r(?!\n)")


def parse(source: bytes, is_file: bool = False) -> CodeUnit:
    """Parse Python code.

    Args:
        source: The bytes of a file, or of a single function or method. A single function may be indented.
        is_file: Whether the source is a file, even if it holds a single function.

    Returns:
        The parsed code. Its attribute `is_function` is True if `is_file` is False and the source consists of
        one function, apart from comments.

    Raises:
        InputError: The code is not UTF-8, or has a syntax error. The message begins with the line number, as
            in `line 3: `.
    """
    _check_encoding(source)
    frame = _FRAME if not is_file and _FIRST_CODE.match(source) else b""
    text = frame + source
    frame_lines = frame.count(b"\n")
    _check_syntax(text, frame_lines)
    root = Parser(GRAMMAR).parse(text).root_node
    if (other := _other_syntax(text, root)) is not None:
        line = text.count(b"\n", 0, other) + 1 - frame_lines
        raise InputError(f"line {line}: the syntax is valid, but tree-sitter does not know it")
    statements = _statements(root)
    if frame:
        block = statements[0].child_by_field_name("consequence") if len(statements) == 1 else None
        statements = _statements(block) if block else []
    is_function = not is_file and len(statements) == 1 and _is_function(statements[0])
    if frame and not is_function:
        line = source.count(b"\n", 0, source.index(source.lstrip()[:1])) + 1
        raise InputError(f"line {line}: the code is indented, but is not a single function")
    return CodeUnit("python", text, Span(len(frame), len(text)), root, is_function)


def _check_encoding(source: bytes) -> None:
    """Check that a source is encoded in UTF-8, and that no encoding comment names another encoding.

    Raises:
        InputError: The source has another encoding.
    """
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
    """Check that CPython can compile Python code.

    Args:
        text: The code. If the user's code is an indented method, `text` begins with an added line `if 1:`,
            because Python does not allow indentation at the beginning.
        frame_lines: The number of added lines at the beginning of `text`, 0 or 1. Line numbers in error
            messages do not count added lines.

    Raises:
        InputError: CPython cannot compile the code.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "<code>", "exec", dont_inherit=True)
    except SyntaxError as error:
        line = max((error.lineno or 1) - frame_lines, 1)
        # Each version of Python has its own syntax: f-strings nest quotes since 3.12, for example.
        version = ".".join(map(str, sys.version_info[:2]))
        raise InputError(f"line {line}: {error.msg} (read by Python {version})") from None
    except (RecursionError, MemoryError):
        raise InputError("line 1: the code is nested too deeply") from None
    except ValueError as error:  # a null byte
        line = text.count(b"\n", 0, max(text.find(b"\0"), 0)) + 1 - frame_lines
        raise InputError(f"line {line}: {error}") from None


def _other_syntax(text: bytes, root: Node) -> int | None:
    """Find the first place that CPython can parse, but tree-sitter cannot.

    Args:
        text: Python code that CPython can compile.
        root: The root of the syntax tree from tree-sitter.

    Returns:
        The index of the first byte of this place; None if there is none.
    """
    if match := _LONE_RETURN.search(text):  # ends a line for CPython, but not for tree-sitter
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


def _statements(node: Node) -> list[Node]:
    """Return the statements of a module or block, without comments."""
    return [child for child in node.named_children if child.type != "comment"]


def _is_function(node: Node) -> bool:
    """Return whether a statement defines a function."""
    definition = node.child_by_field_name("definition") or node
    return definition.type == "function_definition"


@cache
def _query(patterns: str) -> Query:
    """Compile a tree-sitter query for Python."""
    return Query(GRAMMAR, patterns)


def captures(unit: CodeUnit, patterns: str) -> dict[str, list[Node]]:
    """Find the syntax nodes that match a tree-sitter query.

    Args:
        unit: The parsed code.
        patterns: The query, with captures such as `@name`.

    Returns:
        A dict from the name of each capture (without `@`) to its nodes, in the order of the source. Outer
        nodes come before inner ones. A capture without matches is missing.
    """
    found = QueryCursor(_query(patterns)).captures(unit.root)
    return {
        name: sorted(nodes, key=lambda node: (node.start_byte, -node.end_byte))
        for name, nodes in found.items()
    }


def taken_names(unit: CodeUnit) -> frozenset[str]:
    """Return all identifiers in the code, including attributes. A new name must differ from all of them."""
    names = {unit.text_of(node).decode() for node in captures(unit, "(identifier) @name").get("name", [])}
    return frozenset(names | {unicodedata.normalize("NFKC", name) for name in names})


def field(node: Node, name: str) -> Node:
    """Return the child with a given role in a syntax node, such as the "body" of a loop.

    Args:
        node: The syntax node.
        name: The name of the role. The tree-sitter grammar calls it a field.

    Raises:
        ValueError: The node has no such child.
    """
    child = node.child_by_field_name(name)
    if child is None:
        raise ValueError(f"a {node.type} without {name}")
    return child


def token(node: Node, text: str) -> Node:
    """Return the first token with a given text, such as ":", among the children of a syntax node."""
    return next(child for child in node.children if child.type == text)


def line_start(unit: CodeUnit, byte: int) -> int:
    """Return the index of the first byte of the line that contains a given byte."""
    return unit.text.rfind(b"\n", 0, byte) + 1


def line_end(unit: CodeUnit, byte: int) -> int:
    """Return the index of the end of the line that contains a given byte; the line ending is not included."""
    end = unit.text.find(b"\n", byte)
    if end < 0:
        return len(unit.text)
    return end - 1 if unit.text[end - 1 : end] == b"\r" else end


def statement_end(unit: CodeUnit, statement: Node) -> int:
    """Return the byte index at which the last line of a statement ends, without the line ending.

    A comment or semicolon after the statement belongs to this line. If a backslash after the statement
    continues the line, the end of the next line is returned.
    """
    rest = _REST.match(unit.text, statement.end_byte)
    return line_end(unit, rest.end() if rest else statement.end_byte)


def starts_line(unit: CodeUnit, node: Node) -> bool:
    """Return whether a syntax node is the first one on a logical line.

    This is True if only white space stands before the node on its line, and if the line before does not end
    with a backslash.
    """
    start = line_start(unit, node.start_byte)
    before = unit.text[:start].rstrip(b"\r\n") if start else b""
    return not unit.text[start : node.start_byte].strip(b" \t\f\xef\xbb\xbf") and not before.endswith(b"\\")


def is_inline(unit: CodeUnit, colon: Node, suite: Node) -> bool:
    """Return whether the body of a statement stands on the same line as its head, as in `if x: return`.

    Args:
        unit: The parsed code.
        colon: The syntax node of the colon, with which the head ends.
        suite: The syntax node of the body.
    """
    between = unit.text[colon.end_byte : suite.start_byte]
    return b"\n" not in re.sub(rb"\\\r?\n", b"", between)


def join(unit: CodeUnit, *parts: bytes | Span) -> tuple[bytes | Span, ...]:
    """Add spaces between the parts of a new text where words or braces would merge.

    For example, the words `not` and `x` would merge to `notx`. Two braces would merge to `{{`, which is an
    escaped brace in an f-string.

    Args:
        unit: The parsed code.
        parts: The parts: new bytes, or ranges of the source.

    Returns:
        The parts in their order, with the added spaces between them. Empty parts are left out.
    """
    joined: list[bytes | Span] = []
    last = b""
    for part in parts:
        text = part if isinstance(part, bytes) else unit.text[part.start : part.end]
        if not text:
            continue
        is_word = _is_word(last[-1:]) and (_is_word(text[:1]) or text[:1] in (b'"', b"'"))
        if last and (is_word or last[-1:] + text[:1] in (b"{{", b"}}")):
            joined.append(b" ")
        joined.append(part)
        last = text
    return tuple(joined)


def pad(unit: CodeUnit, start: int, end: int, *parts: bytes | Span) -> tuple[bytes | Span, ...]:
    """Add spaces to a replacement text, so that its parts do not merge with each other or the source.

    For example, the words `not` and `x` would merge to `notx`, and in an f-string two braces `{` would merge
    to the escape `{{`.

    Args:
        unit: The parsed code.
        start: The index of the first byte that is replaced.
        end: The index after the last byte that is replaced.
        parts: The parts of the new text: new bytes, or ranges of the source.

    Returns:
        The parts, with the added spaces.
    """
    before, after = Span(max(start - 1, 0), start), Span(end, min(end + 1, len(unit.text)))
    joined = join(unit, before, *parts, after)
    return joined[start > 0 : len(joined) - (after.start < after.end)]


def _is_word(character: bytes) -> bool:
    """Return whether a byte can be part of a name or number."""
    return character.isalnum() or character == b"_" or character >= b"\x80"
