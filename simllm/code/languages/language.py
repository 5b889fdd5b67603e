"""Programming languages: their grammars, and the rules that find documented functions in source files."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from inspect import cleandoc
from typing import TYPE_CHECKING

from simllm.code.languages.cursor import NodePath, TreeCursor
from simllm.errors import InputError

# Only at the first parse: training on a built corpus, too, imports this module, and parses nothing.
if TYPE_CHECKING:
    from tree_sitter import Language as Grammar
    from tree_sitter import Node, Parser


def text(node: Node) -> str:
    """Return the source text of a syntax node."""
    return (node.text or b"").decode(errors="replace")


def field_text(node: Node, name: str) -> str:
    """Return the source text of the child in a tree-sitter field, such as "body"; "" if there is none."""
    child = node.child_by_field_name(name)
    return text(child) if child else ""


def strip_block_marks(raw: str) -> str:
    """Remove the comment marks `/**`, `*/` and `*` from a block comment."""
    inside = re.sub(r"\A/\*+", "", raw)
    if inside.rstrip().endswith("*/"):
        inside = inside.rstrip()[:-1].rstrip("*")
    lines = inside.split("\n")
    starred = all(re.match(r"\s*(?:\*|\Z)", line) for line in lines[1:])
    # If a line has text but no star at its beginning, the stars of other lines may mark list items. Then a
    # star is removed only if it stands alone on its line, or before a tag like `@param`.
    star = re.compile(r"\A\s*\*+" if starred else r"\A\s*\*(?=\s*(?:@|\Z))")
    return cleandoc("\n".join([lines[0], *(star.sub("", line) for line in lines[1:])]))


def strip_line_marks(raw: str, mark: str) -> str:
    """Remove a mark (a regular expression) from all lines of a comment, and their common indentation."""
    return cleandoc("\n" + "\n".join(re.sub(rf"\A\s*{mark}", "", line) for line in raw.splitlines()))


LONGEST_PARSE = 10.0  # seconds of processor time; a hundredth is enough for code, but some data take hours
_CHUNK = 1 << 12  # bytes that the parser reads at once


@cache
def load_grammar(module: str, function: str) -> Grammar:
    """Load a tree-sitter grammar from a function of a module such as "tree_sitter_go"."""
    from tree_sitter import Language as Grammar

    return Grammar(getattr(import_module(module), function)())


def _best_parse(grammars: Sequence[tuple[str, str]], code: bytes) -> Node:
    """Return the root of the tree from the first grammar without syntax errors, else from the first one.

    TimeoutError after `LONGEST_PARSE` seconds of processor time for one grammar.
    """
    from tree_sitter import Parser

    roots = []
    for grammar in grammars:
        roots.append(_parse(Parser(load_grammar(*grammar)), code))
        if not roots[-1].has_error:
            return roots[-1]
    return roots[0]


def _parse(parser: Parser, code: bytes) -> Node:
    """Parse source code by one grammar; raise TimeoutError after `LONGEST_PARSE` seconds."""
    started = time.process_time()

    def check(offset: int, has_error: bool) -> bool:
        if time.process_time() - started > LONGEST_PARSE:
            raise TimeoutError(f"parsing took more than {LONGEST_PARSE:.0f} s")
        return False

    # tree-sitter ignores the callback for plain bytes. A function that returned the whole rest of the code
    # would copy it at each read.
    tree = parser.parse(lambda offset, _: code[offset : offset + _CHUNK], progress_callback=check)
    return tree.root_node


_LONGEST_COMMENT = 20_000  # bytes; the rest is cut
_LONGEST_NAME = 1_000  # characters; the rest is cut
_LONGEST_CODE = 20_000  # bytes of a function; the rest is cut
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
        code: The declaration with its body, without the comment before it.
    """

    name: str
    raw: str
    text: str
    head: str
    supertypes: str = ""
    code: str = ""


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
            return _best_parse([self.grammar_without_tag], code)
        return _best_parse(self.grammars, code)

    def functions(self, code: bytes) -> Iterator[Function]:
        """Yield each function that has a documentation comment, in the order of the comments."""
        for path, place in self.documented(code):
            yield self.describe(path, code, place)

    def documented(self, code: bytes) -> Iterator[tuple[NodePath, CommentPlace]]:
        """Yield the path to each function that has a documentation comment, and the place of the comment.

        A path is valid until the next one is taken.
        """
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
                yield path, place

    def describe(self, path: NodePath, code: bytes, place: CommentPlace) -> Function:
        """Make the `Function` at the end of a path from the root of the syntax tree."""
        function = path[-1]
        # Hostile code may nest thousands of nodes, whose search for each function would take quadratic time.
        classes = [node for node in path[-_DEEPEST:-1] if node.type in self.classes]
        names = [*(field_text(node, "name") for node in classes), self.name(function)]
        raw = code[place.start : place.end][:_LONGEST_COMMENT].decode(errors="replace")
        return Function(
            name=".".join(filter(None, names)).replace("::", ".")[-_LONGEST_NAME:],
            raw=raw,
            text=self.strip_marks(raw),
            head=code[function.start_byte : function.start_byte + 200].decode(errors="replace"),
            supertypes=_supertypes(classes[-1]) if classes else "",
            code=code[function.start_byte : function.end_byte][:_LONGEST_CODE].decode(errors="replace"),
        )


_LONGEST_HERITAGE = 2_000  # characters; the rest is cut
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


def _supertypes(node: Node) -> str:
    """Return the names of the types that a class extends or implements, separated by spaces.

    Package names and type arguments are removed.
    """
    heritage = " ".join(text(child) for child in node.children if child.type in _HERITAGE)
    heritage = heritage[:_LONGEST_HERITAGE]
    for noise in (r"<[^<>]*>", r"<[^<>]*>", r"\[[^\[\]]*\]", r"\w+\s*=\s*[\w.]+"):
        heritage = re.sub(noise, " ", heritage)
    names = [re.split(r"\.|::|\\", name)[-1] for name in re.findall(r"[\w.:\\]+", heritage)]
    # A word without a capital first letter may be a keyword such as `extends`.
    return " ".join(name for name in names if re.match("_*[A-Z]", name))


# Each pattern matches a whole comment (or several in a row), even if the comment is never closed. Therefore
# each byte of a file is matched only once, in linear time.
_BLOCK = re.compile(rb"/\*\*(?![*/])(?s:.*?)(?:\*/|\Z)")
_NEXT = re.compile(rb"\s*(?:(?://[^\n]*|/\*(?!\*)(?s:.*?)(?:\*/|\Z))\s*)*+")
_APART = re.compile(rb"[ \t]*\n[ \t]*\n")
_NOTHING = (b"", b"<?php", b"'use strict';", b'"use strict";')


def block_comments(code: bytes) -> Iterator[CommentPlace]:
    """Yield the places of each comment `/** ... */` that has code after it, except for a file header."""
    opening = True
    for match in _BLOCK.finditer(code):
        # A file header is the first comment, if a blank line follows it, and nothing stands before it except
        # a line `<?php` or `'use strict';`.
        header = opening and code[: match.start()].strip() in _NOTHING and _APART.match(code, match.end())
        opening = False
        after = _NEXT.match(code, match.end())
        if after and after.end() < len(code) and not header:
            yield CommentPlace(match.start(), match.end(), after.end())


def line_comments(code: bytes, pattern: re.Pattern[bytes]) -> Iterator[CommentPlace]:
    """Yield the places of the comments directly before a declaration.

    Group 1 of the pattern matches consecutive comment lines; group 2 matches the beginning of a declaration
    after them. Matches without group 2 are skipped.
    """
    for match in pattern.finditer(code):
        if match.start(2) >= 0:
            indent = len(match[1]) - len(match[1].lstrip())
            yield CommentPlace(match.start(1) + indent, match.end(1), match.start(2))


LANGUAGE_OF_SUFFIX = {
    ".py": "python",
    ".pyi": "python",
    ".js": "javascript",
    ".jsx": "javascript",
    ".mjs": "javascript",
    ".cjs": "javascript",
    ".ts": "typescript",
    ".tsx": "typescript",
    ".mts": "typescript",
    ".cts": "typescript",
    ".java": "java",
    ".go": "go",
    ".rb": "ruby",
    ".rake": "ruby",
    ".php": "php",
    ".cc": "cpp",
    ".cpp": "cpp",
    ".cxx": "cpp",
    ".hh": "cpp",
    ".hpp": "cpp",
}


@cache
def find_language(name: str) -> Language:
    """Return the rules of a language that a user named; InputError lists the supported languages."""
    try:
        return load_language(name)
    except KeyError:
        supported = ", ".join(sorted(set(LANGUAGE_OF_SUFFIX.values())))
        raise InputError(f"language {name!r}: expected one of {supported}") from None


def load_language(name: str) -> Language:
    """Return the rules of a language; KeyError if it is not supported."""
    if name not in LANGUAGE_OF_SUFFIX.values():
        raise KeyError(name)
    # Imported by name, because the rules are made of this module.
    language: Language = import_module("simllm.code.languages.rules").LANGUAGES[name]
    return language
