"""Data types for rewriting code: parsed code, the places to rewrite, and the symbols to rename."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tree_sitter import Node

from simllm.perturb.code.source_edits import Edit, Span


@dataclass(frozen=True)
class CodeUnit:
    """Parsed code: a source file, or a single function.

    In some languages, a function cannot be parsed alone. The parser then puts lines around the function, such
    as `class Unit {` and `}`. These lines are called the frame.

    Attributes:
        language: The language, "java" or "python".
        text: The parsed bytes: the source with the frame, if there is one.
        source: The range of bytes in `text` that contains the source, without the frame.
        root: The root of the syntax tree of `text`.
        is_function: True for a single function or constructor, False for a file. This matters for renaming,
            because other files may use the names that a file declares.
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
        """Return the number of the source line on which a syntax node begins.

        The first line is 1. Lines that the parser put before the source (the frame) are not counted.
        """
        before = self.text[: self.source.start].count(b"\n")
        return node.start_point.row + 1 - before

    def indent_of(self, byte: int) -> bytes:
        """Return the white space at the beginning of the line that contains a given byte.

        Args:
            byte: The index of the byte in `text`.
        """
        line = self.text[self.text.rfind(b"\n", 0, byte) + 1 :]
        return line[: len(line) - len(line.lstrip(b" \t\f"))]

    @property
    def newline(self) -> bytes:
        """The line ending of the source: CRLF if the first line ends with CRLF, otherwise LF."""
        first = self.text.find(b"\n", self.source.start)
        return b"\r\n" if first > 0 and self.text[first - 1 : first] == b"\r" else b"\n"


@dataclass(frozen=True)
class Site:
    """A place in the code that a rewrite rule can rewrite without changing the behaviour.

    Attributes:
        node: The syntax node to rewrite.
        edits: The edits that rewrite the node. They must be applied together.
    """

    node: Node
    edits: tuple[Edit, ...]


@dataclass(frozen=True)
class SkippedSite:
    """A place in the code that a rewrite rule does not rewrite, because the behaviour might change.

    Attributes:
        node: The syntax node that the rule would have rewritten.
        reason: The reason for not rewriting the node, as a clause without a full stop. An example is "the
            loop variable is read after the loop".
        kind: The kind of symbol if the rule renames symbols: "function", "parameter" or "variable". Empty for
            all other rules.
    """

    node: Node
    reason: str
    kind: str = ""


@dataclass(frozen=True)
class Symbol:
    """A function, parameter or local variable that can be renamed safely.

    Attributes:
        kind: "function", "parameter" or "variable".
        name: The current name.
        node: The syntax node of the declaration.
        uses: The range of bytes of each occurrence of the name that must be renamed. The occurrence in the
            declaration is included, and so are mentions in documentation such as `@param NAME`.
    """

    kind: str
    name: str
    node: Node
    uses: tuple[Span, ...]


StructuralRule = Callable[[CodeUnit], Iterator[Site | SkippedSite]]


@dataclass(frozen=True)
class RewriteRules:
    """The rewrite rules of one programming language. A rule changes code without changing its behaviour.

    Attributes:
        parse: The function that parses the bytes of source code. Its second argument is True if the code is a
            whole file, and False if the code may also be a single function.
        structural: The rules that change the structure of code: a dict from the name of a rule, such as
            "reverse-if", to a function. This function yields a `Site` for each place that can be rewritten,
            and a `SkippedSite` for each place that is unsafe to rewrite. If one place contains another, the
            inner place comes first.
        symbols: The function that yields a `Symbol` for each symbol (such as a variable) that can be renamed,
            and a `SkippedSite` for each symbol that cannot.
        reserved: Words that must not be used as new names, such as keywords.
    """

    parse: Callable[[bytes, bool], CodeUnit]
    structural: dict[str, StructuralRule]
    symbols: Callable[[CodeUnit], Iterator[Symbol | SkippedSite]]
    reserved: frozenset[str]
