"""What there is to know about a language."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module

from tree_sitter import Language as Grammar
from tree_sitter import Node, Parser


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
    """Where a documentation comment may be, in bytes: before `start` stands what it documents, or after."""

    start: int
    end: int
    declaration: int  # where the node to look at begins


@dataclass(frozen=True)
class Language:
    """How to find the documented functions of a language.

    `places` looks at bytes alone, which is fast; a file in which it finds nothing is never parsed.
    `function` says which function is documented where the parsed node begins, if any.
    """

    grammars: tuple[tuple[str, str], ...]  # module, function; the second where the first finds errors
    places: Callable[[bytes], Iterator[Place]]
    function: Callable[[Node], Node | None]
    undress: Callable[[str], str]  # takes the marks of a comment away
    name: Callable[[Node], str]
    classes: frozenset[str] = frozenset()  # types of nodes that give their name to what is inside

    def parse(self, code: bytes) -> Node:
        """Return the root of the syntax tree."""
        roots = []
        for grammar in self.grammars:
            roots.append(_parser(*grammar).parse(code).root_node)
            if not roots[-1].has_error:
                return roots[-1]
        return roots[0]

    def functions(self, code: bytes) -> Iterator[Function]:
        """Yield the documented functions of a file, in order."""
        root = None
        for place in self.places(code):
            root = root or self.parse(code)
            comment = root.descendant_for_byte_range(place.start, place.start + 1)
            node = root.descendant_for_byte_range(place.declaration, place.declaration + 1)
            real = comment and comment.start_byte == place.start  # else it is inside a string
            function = self.function(node) if real and node else None
            if function:
                raw = code[place.start : place.end].decode(errors="replace")
                classes = [c for c in _ancestors(function) if c.type in self.classes]
                names = [*(field(c, "name") for c in reversed(classes)), self.name(function)]
                yield Function(
                    name=".".join(filter(None, names)).replace("::", "."),
                    raw=raw,
                    text=self.undress(raw),
                    head=code[function.start_byte : function.start_byte + 200].decode(errors="replace"),
                    supertypes=supertypes(classes[0]) if classes else "",
                )


@cache
def _parser(module: str, function: str) -> Parser:
    return Parser(Grammar(getattr(import_module(module), function)()))


def field(node: Node, name: str) -> str:
    """Return the source of a node's field, "" where it has none."""
    child = node.child_by_field_name(name)
    return text(child) if child else ""


def text(node: Node) -> str:
    """Return the source of a node."""
    return (node.text or b"").decode(errors="replace")


def beginning(node: Node, types: frozenset[str]) -> Node | None:
    """Return the innermost node of one of the types that begins where `node` begins."""
    here: Node | None = node
    while here and here.start_byte == node.start_byte:
        if here.type in types:
            return here
        here = here.parent
    return None


def _ancestors(node: Node) -> Iterator[Node]:
    parent = node.parent
    while parent:
        yield parent
        parent = parent.parent


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
    """Return the simple names of what a class extends and implements, separated by spaces."""
    heritage = " ".join(text(child) for child in node.children if child.type in _HERITAGE)
    for noise in (r"<[^<>]*>", r"<[^<>]*>", r"\[[^\[\]]*\]", r"\w+\s*=\s*[\w.]+"):
        heritage = re.sub(noise, " ", heritage)
    names = [re.split(r"\.|::|\\", name)[-1] for name in re.findall(r"[\w.:\\]+", heritage)]
    return " ".join(name for name in names if re.match("_*[A-Z]", name))
