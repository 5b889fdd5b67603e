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

from simllm.code.languages.node_path import Cursor, NodePath

LONGEST_PARSE = 10.0  # seconds of processor time; code takes a hundredth of it, some data takes hours
_CHUNK = 1 << 12  # bytes that the parser reads at once
_LONGEST_COMMENT = 20_000  # bytes
_LONGEST_NAME, _LONGEST_HERITAGE = 1_000, 2_000  # characters
_DEEPEST = 1_000  # nodes around a function in which its classes are looked for


@dataclass(frozen=True)
class Function:
    """A documented function as it stands in the source."""

    name: str  # Class.method where the class is known
    raw: str  # its comment, with all marks
    text: str  # its comment, without the marks of a comment
    head: str  # how its declaration begins, with annotations
    supertypes: str = ""  # of its class, separated by spaces


@dataclass(frozen=True)
class Place:
    """The byte offsets of what may be a documentation comment, and of the declaration it is about."""

    start: int
    end: int
    declaration: int  # where the node to look at begins


@dataclass(frozen=True)
class Language:
    """The rules that find the documented functions of a language.

    `places` looks at bytes alone, which is fast; a file in which it finds nothing is never parsed.
    `function` takes the path to the node at a place's declaration. It returns the path to the
    function that begins there, if any.
    """

    grammars: tuple[tuple[str, str], ...]  # module, function; the second where the first finds errors
    places: Callable[[bytes], Iterator[Place]]
    function: Callable[[NodePath], NodePath | None]
    undress: Callable[[str], str]  # takes the marks of a comment away
    name: Callable[[Node], str]
    classes: frozenset[str] = frozenset()  # types of nodes that give their name to what is inside

    def parse(self, code: bytes) -> Node:
        """Return the root of the syntax tree.

        Raises TimeoutError if parsing takes more than `LONGEST_PARSE` seconds.
        """
        roots = []
        for grammar in self.grammars:
            roots.append(_parsed(Parser(_grammar(*grammar)), code))
            if not roots[-1].has_error:
                return roots[-1]
        return roots[0]

    def functions(self, code: bytes) -> Iterator[Function]:
        """Yield the documented functions of a file, in order; raise TimeoutError as `parse`."""
        places = list(self.places(code))
        if not places:
            return
        root = self.parse(code)
        comments, declarations = Cursor(root), Cursor(root)
        for place in places:
            comment = comments.path(place.start)[-1]
            if comment.start_byte != place.start:  # inside a string
                continue
            if path := self.function(declarations.path(place.declaration)):
                yield self._described(path, code, place)

    def _described(self, path: NodePath, code: bytes, place: Place) -> Function:
        function = path[-1]
        classes = [node for node in path[-_DEEPEST:-1] if node.type in self.classes]
        names = [*(field(node, "name") for node in classes), self.name(function)]
        raw = code[place.start : place.end][:_LONGEST_COMMENT].decode(errors="replace")
        return Function(
            name=".".join(filter(None, names)).replace("::", ".")[-_LONGEST_NAME:],
            raw=raw,
            text=self.undress(raw),
            head=code[function.start_byte : function.start_byte + 200].decode(errors="replace"),
            supertypes=supertypes(classes[-1]) if classes else "",
        )


def _parsed(parser: Parser, code: bytes) -> Node:
    started = time.process_time()

    def check(offset: int, has_error: bool) -> bool:
        if time.process_time() - started > LONGEST_PARSE:
            raise TimeoutError(f"parsing took more than {LONGEST_PARSE:.0f} s")
        return False

    tree = parser.parse(lambda offset, _: code[offset : offset + _CHUNK], progress_callback=check)
    return tree.root_node


@cache
def _grammar(module: str, function: str) -> Grammar:
    return Grammar(getattr(import_module(module), function)())


def field(node: Node, name: str) -> str:
    """Return the source of a node's field, "" where it has none."""
    child = node.child_by_field_name(name)
    return text(child) if child else ""


def text(node: Node) -> str:
    """Return the source of a node."""
    return (node.text or b"").decode(errors="replace")


def beginning(path: NodePath, types: frozenset[str]) -> NodePath | None:
    """Return the path to the innermost node of one of the types that begins where `path`'s node does."""
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
