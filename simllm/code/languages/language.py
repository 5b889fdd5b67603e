"""The class `Language`, which finds the documented functions in a source file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tree_sitter import Node

from simllm.code.languages.class_supertypes import supertypes
from simllm.code.languages.syntax_node_text import field
from simllm.code.languages.syntax_tree_cursor import NodePath, TreeCursor
from simllm.code.languages.tree_sitter_parser import parse

_LONGEST_COMMENT = 20_000  # bytes; the rest is cut
_LONGEST_NAME = 1_000  # characters; the rest is cut
_DEEPEST = 1_000  # nodes above a function that are searched for its classes


@dataclass(frozen=True)
class Function:
    """A documented function in a source file.

    Attributes:
        name: The name of the function, with the names of its classes before it, such as `Class.method`.
        raw: The documentation comment as it stands in the source, with comment marks such as `//`.
        text: The documentation comment without comment marks.
        head: The first 200 bytes of the declaration, including annotations.
        supertypes: The types that the function's class extends or implements, separated by spaces.
    """

    name: str
    raw: str
    text: str
    head: str
    supertypes: str = ""


@dataclass(frozen=True)
class CommentPlace:
    """The place of a possible documentation comment, and of the declaration that it documents.

    Attributes:
        end: The first byte after the comment.
        declaration: The byte at which the documented function is looked up: usually the first byte of the
            declaration after the comment. A Python docstring stands inside its function, so its `declaration`
            is the same as its `start`.
    """

    start: int
    end: int
    declaration: int


@dataclass(frozen=True)
class Language:
    """A programming language, with the rules that find its documented functions.

    Attributes:
        grammars: Tree-sitter grammars, each as (Python module, function of this module that returns the
            grammar). If code has syntax errors in one grammar, the next grammar is tried.
        places: Yields the places of comments in a source file that may be documentation.
        function: Takes the path from the root to the first word of a declaration (in Python code, to the
            docstring), and returns the path to the function.
        strip_marks: Removes the comment marks, such as `//`, from a comment.
        name: Takes the syntax node of a function and returns the function's name.
        classes: Types of syntax nodes that count as classes, such as "class_definition". Their names are put
            before those of the functions inside, as in `Class.method`.
        tag: A text that every complete source file contains, such as "<?" in PHP; empty for most languages.
        grammar_without_tag: The grammar for code without the tag, such as a single PHP function.
    """

    grammars: tuple[tuple[str, str], ...]
    places: Callable[[bytes], Iterator[CommentPlace]]
    function: Callable[[NodePath], NodePath | None]
    strip_marks: Callable[[str], str]
    name: Callable[[Node], str]
    classes: frozenset[str] = frozenset()
    tag: bytes = b""
    grammar_without_tag: tuple[str, str] | None = None

    def parse(self, code: bytes) -> Node:
        """Return the root of the syntax tree; raise TimeoutError after `LONGEST_PARSE` seconds."""
        if self.grammar_without_tag and self.tag not in code:
            return parse([self.grammar_without_tag], code)
        return parse(self.grammars, code)

    def functions(self, code: bytes) -> Iterator[Function]:
        """Yield each function that has a documentation comment, in the order of the comments."""
        places = list(self.places(code))
        # To save time, a file without such comments is not parsed.
        if not places:
            return
        root = self.parse(code)
        # Two cursors, because each is fast only if its offsets increase; comments and declarations alternate.
        comments, declarations = TreeCursor(root), TreeCursor(root)
        for place in places:
            comment = comments.path(place.start)[-1]
            if comment.start_byte != place.start:  # not a comment, but part of a string
                continue
            if path := self.function(declarations.path(place.declaration)):
                yield self._describe(path, code, place)

    def _describe(self, path: NodePath, code: bytes, place: CommentPlace) -> Function:
        """Make the `Function` at the end of a path from the root of the syntax tree."""
        function = path[-1]
        # Hostile code may nest thousands of nodes, whose search for each function would take quadratic time.
        classes = [node for node in path[-_DEEPEST:-1] if node.type in self.classes]
        names = [*(field(node, "name") for node in classes), self.name(function)]
        raw = code[place.start : place.end][:_LONGEST_COMMENT].decode(errors="replace")
        return Function(
            name=".".join(filter(None, names)).replace("::", ".")[-_LONGEST_NAME:],
            raw=raw,
            text=self.strip_marks(raw),
            head=code[function.start_byte : function.start_byte + 200].decode(errors="replace"),
            supertypes=supertypes(classes[-1]) if classes else "",
        )
