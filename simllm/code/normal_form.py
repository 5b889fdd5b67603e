"""Code normalization: the normal form, in which versions of code are compared.

Valid Python is printed by Python's module `ast`. All other code is split into tokens. Each leaf of its
tree-sitter tree is a token. The exception is a literal, such as a string: the whole literal is one token,
even if it has several leaves. The tokens of a line are joined by single spaces. A line end inside a token,
such as a long string, becomes the character `␊`.
"""

from __future__ import annotations

import ast
import os
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from tree_sitter import Node

from simllm.code.languages.language import find_language

# Types of syntax nodes that are treated as one token: strings, regular expressions and characters.
_LITERAL = re.compile(
    r".*string.*|.*heredoc.*|nowdoc|regex|.*char(acter)?_literal|rune_literal|.*symbol|subshell"
)
IMPORTS = frozenset(
    {
        "future_import_statement",
        "import_declaration",
        "import_from_statement",
        "import_statement",
        "namespace_use_declaration",
        "php_tag",
        "preproc_include",
    }
)
_STATEMENT = re.compile(r".*(statement|declaration|definition)")
# In these languages, braces and semicolons determine the lines of the normal form. In other languages, the
# lines stay as in the text.
_BRACES = frozenset({"cpp", "java", "javascript", "php", "typescript"})
_LINE_END = "␊".encode()  # stands for a line end inside a token, such as a string
_CACHED = 4096  # texts


def normal_forms(texts: Sequence[str], language: str) -> list[list[str]]:
    """Compute the normal forms, as lists of lines, of several versions of code.

    Only Python keeps its indentation, which has a meaning. TimeoutError if parsing takes too long.
    """
    if language == "python":
        printed = [_printed_python(text) for text in texts]
        # If one version is not valid, all are split into tokens: printed code and tokens could not be
        # compared.
        if None not in printed:
            return [list(lines) for lines in printed if lines is not None]
    return [list(_token_lines(text, language)) for text in texts]


def _dedent(text: str) -> str:
    """Remove the indentation that all lines share, and convert all line ends to line feeds."""
    lines = (text.replace("\r\n", "\n").replace("\r", "\n") + "\n").split("\n")
    # Blank lines do not count, but stay, because they may be part of a string.
    indents = [line[: len(line) - len(line.lstrip(" \t"))] for line in lines if line.strip(" \t")]
    shared = os.path.commonprefix(indents)  # noqa: RUF071 (characters are compared, as wanted)
    return "\n".join(line.removeprefix(shared) for line in lines)


@lru_cache(_CACHED)
def _printed_python(text: str) -> tuple[str, ...] | None:
    """Return the lines of Python code as `ast.unparse` prints them; None if the code cannot be parsed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as for invalid escape sequences in the given code
            tree = ast.parse(_dedent(text))
        for node in ast.walk(tree):
            for field in ("body", "orelse", "finalbody"):
                if isinstance(statements := getattr(node, field, None), list):
                    setattr(node, field, [each for each in statements if not _is_ignored(each)])
        return tuple(line for line in ast.unparse(tree).splitlines() if line.strip())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _is_ignored(statement: ast.stmt) -> bool:
    """Return whether a Python statement is an import, or consists only of a string, such as a docstring."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return isinstance(statement.value.value, str)
    return isinstance(statement, ast.Import | ast.ImportFrom)


@lru_cache(_CACHED)
def _token_lines(text: str, language: str) -> tuple[str, ...]:
    """Return the normal form of code as lines, with single spaces between the tokens of a line."""
    code = _dedent(text).encode(errors="replace")
    root = find_language(language).parse(code)
    indents = [_indent(line) for line in code.split(b"\n")] if language == "python" else []
    lines: list[tuple[bytes, list[bytes]]] = []  # the indentation and the tokens of each line
    tokens = list(code_tokens(root, code, language))
    begins_line = _breaks_at_braces if language in _BRACES else _breaks_as_written
    for (token, node, *_), begins in zip(tokens, begins_line(tokens), strict=True):
        if begins or not lines:
            lines.append((indents[node.start_point.row] if indents else b"", []))
        lines[-1][1].append(token)
    return tuple((indent + b" ".join(tokens).replace(b"\n", _LINE_END)).decode() for indent, tokens in lines)


def _indent(line: bytes) -> bytes:
    return line[: len(line) - len(line.lstrip())]


class _Kind(NamedTuple):
    """Properties of all nodes of a tree-sitter type; comments and imports are ignored."""

    is_ignored: bool
    is_literal: bool
    is_statement: bool  # a statement, declaration or definition


@cache
def _kind(node_type: str) -> _Kind:
    return _Kind(
        "comment" in node_type or node_type in IMPORTS,
        bool(_LITERAL.fullmatch(node_type)),
        bool(_STATEMENT.fullmatch(node_type)),
    )


# Text of a token, its syntax node, the node's type (each `node.type` would make a new string), and whether
# the token begins a statement; see `code_tokens`.
Token = tuple[bytes, Node, str, bool]


def code_tokens(root: Node, code: bytes, language: str) -> Iterator[Token]:
    """Yield the tokens of a syntax tree, without comments, docstrings and imports."""
    cursor = root.walk()  # three times as fast as reading lists of children
    parents: list[Node] = []
    begins, checks_nodes = False, language in ("python", "ruby")
    while True:
        node = cursor.node
        assert node is not None  # for the type checker: a cursor always stands on a node
        node_type = node.type
        is_ignored, is_literal, is_statement = _kind(node_type)
        if not (is_ignored or (checks_nodes and _is_ignored_node(node, node_type, language))):
            begins = begins or (is_statement and _is_block(parents))
            if not (is_literal and node.is_named) and cursor.goto_first_child():
                parents.append(node)
                continue
            if (text := code[node.start_byte : node.end_byte]).strip():
                yield text, node, node_type, begins
        begins = False
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return
            parents.pop()


def _is_block(parents: Sequence[Node]) -> bool:
    """Return whether the last node of a path from the root is the root (the whole file) or has braces."""
    return len(parents) == 1 or any(child.type == "{" for child in (parents[-1].children if parents else ()))


def _is_ignored_node(node: Node, node_type: str, language: str) -> bool:
    """Return whether a syntax node is a Python statement that is only a string, or a Ruby import."""
    if language == "python":
        return node_type == "expression_statement" and [c.type for c in node.children] == ["string"]
    # In Ruby, imports are calls of `require` and `require_relative`.
    name = node.child_by_field_name("method") if language == "ruby" and node_type == "call" else None
    return name is not None and name.text in (b"require", b"require_relative")


def _breaks_as_written(tokens: Iterable[Token]) -> Iterator[bool]:
    """Yield for each token whether it begins a new line, as in the original code."""
    row = -1
    for _, node, _, _ in tokens:
        yield node.start_point.row > row
        row = node.end_point.row


def _breaks_at_braces(tokens: Iterable[Token]) -> Iterator[bool]:
    """Yield for each token whether it begins a new line, whatever the line breaks of the original code.

    A new line begins after "{", before and after "}", after ";" outside parentheses, and before each
    statement or declaration that is directly inside braces or at the top level.
    """
    depth, is_after_break = 0, True
    for _, _, kind, begins_statement in tokens:
        yield is_after_break or kind == "}" or begins_statement
        # The semicolons in the head of a `for` loop end no line.
        depth += (kind == "(") - (kind == ")")
        is_after_break = kind in ("{", "}") or (kind == ";" and depth == 0)
