"""Source files and functions, parsed, and the rewrites that rules find in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tree_sitter import Node

from simllm.perturb.code.source_edits import Edit, Span


@dataclass(frozen=True)
class CodeUnit:
    """A source file or a single function, parsed.

    Attributes:
        language: The language, "java" or "python".
        text: The parsed bytes. For a function, this is the source with a frame around it that makes the
            source a whole file, such as `class Unit {` and `}`.
        source: The range of the source in `text`.
        root: The root of the syntax tree of `text`.
        is_function: Whether the source is a single function or constructor, not a file.
    """

    language: str
    text: bytes
    source: Span
    root: Node
    is_function: bool

    def text_of(self, node: Node) -> bytes:
        """Return the bytes of a syntax node."""
        return self.text[node.start_byte : node.end_byte]

    def line_of(self, node: Node) -> int:
        """Return the line of the source in which a syntax node begins, counted from 1."""
        before = self.text[: self.source.start].count(b"\n")
        return node.start_point.row + 1 - before

    def indent_of(self, byte: int) -> bytes:
        """Return the white space at the beginning of the line that contains a byte."""
        line = self.text[self.text.rfind(b"\n", 0, byte) + 1 :]
        return line[: len(line) - len(line.lstrip(b" \t\f"))]

    @property
    def newline(self) -> bytes:
        """The line end of the source: CRLF if the first line ends so."""
        first = self.text.find(b"\n", self.source.start)
        return b"\r\n" if first > 0 and self.text[first - 1 : first] == b"\r" else b"\n"


@dataclass(frozen=True)
class Site:
    """A place where a rule can rewrite the code safely.

    Attributes:
        node: The syntax node that is rewritten.
        edits: The edits; all of them are applied, or none.
    """

    node: Node
    edits: tuple[Edit, ...]


@dataclass(frozen=True)
class SkippedSite:
    """A place where a rule leaves the code as it is, because the rewrite is not surely safe.

    Attributes:
        node: The syntax node that a rewrite would concern.
        reason: Why the node stays: one clause without a full stop, such as "the loop variable is read after
            the loop".
        kind: For a name that stays: "function", "parameter" or "variable".
    """

    node: Node
    reason: str
    kind: str = ""


@dataclass(frozen=True)
class Symbol:
    """A function, parameter or local variable that can be renamed safely.

    Attributes:
        kind: "function", "parameter" or "variable".
        name: The present name.
        node: The syntax node of the declaration.
        uses: Every range that holds the name and has to change, the declaration among them. Mentions in
            documentation, such as `@param NAME`, are uses, too.
    """

    kind: str
    name: str
    node: Node
    uses: tuple[Span, ...]


StructuralRule = Callable[[CodeUnit], Iterator[Site | SkippedSite]]


@dataclass(frozen=True)
class RewriteRules:
    """What the rewrites of one language consist of.

    Attributes:
        parse: Parses a source into a unit.
        structural: The structural rules, by name. The sites of inner code come before those of the code
            around it.
        symbols: Yields the symbols of a unit that can be renamed, and the skipped ones.
        reserved: Words that are no names.
    """

    parse: Callable[[bytes], CodeUnit]
    structural: dict[str, StructuralRule]
    symbols: Callable[[CodeUnit], Iterator[Symbol | SkippedSite]]
    reserved: frozenset[str]
