"""The description of a programming language, and the search for its documented functions."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module

from tree_sitter import Language as Grammar
from tree_sitter import Node, Parser

from simllm.code.languages.node_path import NodePath, TreeCursor

LONGEST_PARSE = 10.0  # seconds of processor time; code takes a hundredth of it, but some data takes hours
_CHUNK = 1 << 12  # bytes that the parser reads at once
_LONGEST_COMMENT = 20_000  # bytes; the rest is cut
_LONGEST_NAME, _LONGEST_HERITAGE = 1_000, 2_000  # characters; the rest is cut
_DEEPEST = 1_000  # nodes above a function that are searched for its classes


@dataclass(frozen=True)
class Function:
    """A documented function.

    Attributes:
        name: The name, with the names of its classes: Class.method.
        raw: The documentation comment with its comment marks.
        text: The documentation comment without comment marks.
        head: The beginning of the declaration, including annotations.
        supertypes: The supertypes of its class, separated by spaces.
    """

    name: str
    raw: str
    text: str
    head: str
    supertypes: str = ""


@dataclass(frozen=True)
class CommentPlace:
    """The byte offsets of a possible documentation comment and of its declaration."""

    start: int
    end: int
    declaration: int  # start of the declaration


@dataclass(frozen=True)
class Language:
    """A programming language, with the rules that find its documented functions.

    Attributes:
        grammars: Module and function of tree-sitter grammars; the next is used if one finds errors.
        places: Finds possible documentation comments in the bytes of a file. This is fast; a file
            without any is not parsed.
        function: Takes the path to the node of a declaration, and returns the path to the function that
            begins there, or None.
        strip_marks: Removes the comment marks of a comment.
        name: Returns the name of the function at a node.
        classes: Types of nodes whose names are part of the names of the functions inside.
    """

    grammars: tuple[tuple[str, str], ...]
    places: Callable[[bytes], Iterator[CommentPlace]]
    function: Callable[[NodePath], NodePath | None]
    strip_marks: Callable[[str], str]
    name: Callable[[Node], str]
    classes: frozenset[str] = frozenset()

    def parse(self, code: bytes) -> Node:
        """Return the root of the syntax tree.

        Raises:
            TimeoutError: Parsing takes more than `LONGEST_PARSE` seconds.
        """
        roots = []
        for grammar in self.grammars:
            roots.append(_parse(Parser(_grammar(*grammar)), code))
            if not roots[-1].has_error:
                return roots[-1]
        return roots[0]

    def functions(self, code: bytes) -> Iterator[Function]:
        """Yield the documented functions of a file, in order.

        Raises:
            TimeoutError: Parsing takes too long (see `parse`).
        """
        places = list(self.places(code))
        if not places:
            return
        root = self.parse(code)
        comments, declarations = TreeCursor(root), TreeCursor(root)
        for place in places:
            comment = comments.path(place.start)[-1]
            if comment.start_byte != place.start:  # not a comment, but part of a string
                continue
            if path := self.function(declarations.path(place.declaration)):
                yield self._describe(path, code, place)

    def _describe(self, path: NodePath, code: bytes, place: CommentPlace) -> Function:
        """Return the function at the end of `path`, with its qualified name and its comment."""
        function = path[-1]
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


def _parse(parser: Parser, code: bytes) -> Node:
    """Parse source code; raise TimeoutError after `LONGEST_PARSE` seconds of processor time."""
    started = time.process_time()

    def check(offset: int, has_error: bool) -> bool:
        if time.process_time() - started > LONGEST_PARSE:
            raise TimeoutError(f"parsing took more than {LONGEST_PARSE:.0f} s")
        return False

    tree = parser.parse(lambda offset, _: code[offset : offset + _CHUNK], progress_callback=check)
    return tree.root_node


@cache
def _grammar(module: str, function: str) -> Grammar:
    """Load a tree-sitter grammar from its Python package."""
    return Grammar(getattr(import_module(module), function)())


def field(node: Node, name: str) -> str:
    """Return the source of a field of a node, or "" if the node has no such field."""
    child = node.child_by_field_name(name)
    return text(child) if child else ""


def text(node: Node) -> str:
    """Return the source of a node."""
    return (node.text or b"").decode(errors="replace")


def path_to_type(path: NodePath, types: frozenset[str]) -> NodePath | None:
    """Return the path to the innermost node of given types that begins where the last node of `path` does."""
    start = path[-1].start_byte
    for at in range(len(path) - 1, -1, -1):
        if path[at].start_byte != start:
            return None
        if path[at].type in types:
            return path[: at + 1]
    return None


_HERITAGE = {
    "argument_list",
    "base_clause",
    "class_heritage",
    "class_interface_clause",
    "extends_interfaces",
    "extends_type_clause",
    "super_interfaces",
    "superclass",
}


def supertypes(node: Node) -> str:
    """Return the simple names of the types that a class extends and implements, separated by spaces."""
    heritage = " ".join(text(child) for child in node.children if child.type in _HERITAGE)
    heritage = heritage[:_LONGEST_HERITAGE]
    for noise in (r"<[^<>]*>", r"<[^<>]*>", r"\[[^\[\]]*\]", r"\w+\s*=\s*[\w.]+"):
        heritage = re.sub(noise, " ", heritage)
    names = [re.split(r"\.|::|\\", name)[-1] for name in re.findall(r"[\w.:\\]+", heritage)]
    return " ".join(name for name in names if re.match("_*[A-Z]", name))
