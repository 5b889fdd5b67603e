"""The normal form of code: its text without comments, docstrings, imports and layout.

Two texts that differ only in these have equal normal forms. There are two kinds. Python code that parses
is printed by Python's module `ast`. All other code is split into the leaves of its tree-sitter tree, with
single spaces between them.
"""

from __future__ import annotations

import ast
import re
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from functools import lru_cache

from tree_sitter import Node

from simllm.code import languages

# Syntax nodes that are kept as one token: strings, regular expressions and characters.
_LITERAL = re.compile(
    r".*string.*|.*heredoc.*|nowdoc|regex|.*char(acter)?_literal|rune_literal|.*symbol|subshell"
)
_IMPORTS = frozenset(
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
# Languages whose lines follow from braces and semicolons; the lines of others are those of the text.
_BRACES = frozenset({"cpp", "java", "javascript", "php", "typescript"})
_LINE_END = re.compile(r"\r\n?|\n")
_CACHED = 4096  # texts


def normal_forms(texts: Sequence[str], language: str) -> list[list[str]]:
    """Bring texts into normal form; all of them get the same kind.

    Args:
        texts: Versions of some code.
        language: The language, such as "python".

    Returns:
        The lines of the normal form of each text. Python lines are indented, others are not.

    Raises:
        InputError: The language is not supported.
        TimeoutError: Parsing a text takes too long.
    """
    if language == "python":
        printed = [_printed_python(text) for text in texts]
        if None not in printed:
            return [list(lines) for lines in printed if lines is not None]
    return [list(_token_lines(text, language)) for text in texts]


def _dedent(text: str) -> str:
    """Remove common indentation, and write all line ends as line feeds."""
    return textwrap.dedent(_LINE_END.sub("\n", text) + "\n")


@lru_cache(_CACHED)
def _printed_python(text: str) -> tuple[str, ...] | None:
    """Return the lines of Python code as `ast.unparse` prints it; None if it has a syntax error.

    Imports and statements that are only a string are left out.
    """
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
    """Return whether a Python statement is an import or only a string."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return isinstance(statement.value.value, str)
    return isinstance(statement, ast.Import | ast.ImportFrom)


@lru_cache(_CACHED)
def _token_lines(text: str, language: str) -> tuple[str, ...]:
    """Return the lines of code, with single spaces between its tokens (the leaves of its syntax tree)."""
    code = _dedent(text).encode(errors="replace")
    root = languages.find(language).parse(code)
    indents = [_indent(line) for line in code.decode().split("\n")] if language == "python" else []
    lines: list[tuple[str, list[str]]] = []  # the indentation and the tokens of each line
    breaks = _breaks_at_braces if language in _BRACES else _breaks_as_written
    for node, begins_line in breaks(_tokens(root, language)):
        if begins_line or not lines:
            lines.append((indents[node.start_point.row] if indents else "", []))
        lines[-1][1].append(" ".join((node.text or b"").decode().split("\n")))
    return tuple(indent + " ".join(tokens) for indent, tokens in lines)


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _tokens(root: Node, language: str) -> Iterator[tuple[Node, bool]]:
    """Yield the tokens of a syntax tree: leaves and whole literals, without comments and imports.

    Yields:
        The node of the token, and whether the token begins a statement, declaration or definition that
        stands directly in the file or in braces.
    """
    stack = [(root, False, False)]  # a node, whether it stands in the file or in braces, the yielded flag
    while stack:
        node, is_in_block, begins = stack.pop()
        if _is_ignored_node(node, language):
            continue
        begins = begins or (is_in_block and bool(_STATEMENT.fullmatch(node.type)))
        if not node.child_count or (node.is_named and _LITERAL.fullmatch(node.type)):
            if (node.text or b"").strip():
                yield node, begins
            continue
        children = node.children
        is_block = node is root or any(child.type == "{" for child in children)
        stack += [(child, is_block, False) for child in reversed(children[1:])]
        stack.append((children[0], is_block, begins))


def _is_ignored_node(node: Node, language: str) -> bool:
    """Return whether a syntax node is a comment, an import, a Python docstring or Ruby's `require`."""
    if "comment" in node.type or node.type in _IMPORTS:
        return True
    if language == "python":
        return node.type == "expression_statement" and [c.type for c in node.children] == ["string"]
    name = node.child_by_field_name("method") if language == "ruby" and node.type == "call" else None
    return name is not None and name.text in (b"require", b"require_relative")


def _breaks_as_written(tokens: Iterator[tuple[Node, bool]]) -> Iterator[tuple[Node, bool]]:
    """Yield each token, and whether it begins a line in the text."""
    row = -1
    for node, _ in tokens:
        yield node, node.start_point.row > row
        row = node.end_point.row


def _breaks_at_braces(tokens: Iterator[tuple[Node, bool]]) -> Iterator[tuple[Node, bool]]:
    """Yield each token, and whether it begins a line by the rules for languages with braces.

    A line begins after "{", before and after "}", after ";" outside parentheses, and at a statement,
    declaration or definition that stands directly in the file or in braces.
    """
    depth, is_after_break = 0, True
    for node, begins_statement in tokens:
        kind = node.type
        yield node, is_after_break or kind == "}" or begins_statement
        depth += (kind == "(") - (kind == ")")
        is_after_break = kind in ("{", "}") or (kind == ";" and depth == 0)
