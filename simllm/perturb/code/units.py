"""Data types for rewriting code: units, sites, symbols and the rules of a language."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tree_sitter import Node

from simllm.perturb.code.edits import Edit, Span


@dataclass(frozen=True)
class CodeUnit:
    """Parsed code: a source file, or a single function.

    Attributes:
        language: "java" or "python".
        text: The parsed bytes, with the frame.
        source: The span of the source in `text`, without the frame.
        root: The root of the syntax tree of `text`.
        is_function: True for a single function or constructor, False for a file. Other files may use the
            names that a file declares, so fewer symbols of a file can be renamed.
    """

    language: str
    text: bytes
    source: Span
    root: Node
    is_function: bool

    def text_of(self, node: Node) -> bytes:
        """Return the source bytes of a syntax node."""
        return self.text[node.start_byte : node.end_byte]

    def line_of(self, node: Node) -> int:
        """Return the source line on which a syntax node begins, counted from 1 without the frame."""
        before = self.text[: self.source.start].count(b"\n")
        return node.start_point.row + 1 - before

    def indent_of(self, byte: int) -> bytes:
        """Return the white space at the beginning of the line that contains a given byte of `text`."""
        line = self.text[self.text.rfind(b"\n", 0, byte) + 1 :]
        return line[: len(line) - len(line.lstrip(b" \t\f"))]

    def holds(self, span: Span) -> bool:
        """Return whether a range of bytes lies in the source, and not in the frame."""
        return self.source.start <= span.start and span.end <= self.source.end

    @property
    def newline(self) -> bytes:
        """The line ending of the first source line, CRLF or LF."""
        first = self.text.find(b"\n", self.source.start)
        return b"\r\n" if first > 0 and self.text[first - 1 : first] == b"\r" else b"\n"


def span_of(node: Node) -> Span:
    """Return the range of bytes of a syntax node."""
    return Span(node.start_byte, node.end_byte)


def indentation_step(indent: bytes) -> bytes:
    """Return one level of indentation in the style of a line's white space: a tab or four spaces."""
    return b"\t" if indent.startswith(b"\t") else b"    "


@dataclass(frozen=True)
class Site:
    """A place that a rule can rewrite safely, with edits that must be applied together."""

    node: Node
    edits: tuple[Edit, ...]


@dataclass(frozen=True)
class SkippedSite:
    """A place that a rule does not rewrite, because the behaviour might change.

    Attributes:
        reason: A clause without a full stop, such as "the loop variable is read after the loop".
        kind: The kind of the symbol; empty for structural rules.
    """

    node: Node
    reason: str
    kind: str = ""


@dataclass(frozen=True)
class Symbol:
    """A symbol that can be renamed safely.

    Attributes:
        node: The declaration.
        uses: The spans to rename, including the declaration and mentions in documentation (`@param NAME`).
        values: The kind of the symbol's values, as `simllm.perturb.code.names` lists them; empty if unknown.
    """

    kind: str
    name: str
    node: Node
    uses: tuple[Span, ...]
    values: str = ""


StructuralRule = Callable[[CodeUnit], Iterator[Site | SkippedSite]]


@dataclass(frozen=True)
class RewriteRules:
    """The rewrite rules of one programming language.

    Attributes:
        parse: Parses source bytes. The second argument is True if the source must be a whole file; the third
            is code around the source, which becomes a part of the frame.
        structural: The structural rules by name. Inner places come before the places around them.
        symbols: Yields the symbols that can be renamed, and a skipped site for each other one.
        reserved: Words that must not become new names, such as keywords.
    """

    parse: Callable[[bytes, bool, bytes], CodeUnit]
    structural: dict[str, StructuralRule]
    symbols: Callable[[CodeUnit], Iterator[Symbol | SkippedSite]]
    reserved: frozenset[str]
