"""Functions that parse source code with tree-sitter, within a time limit, and load tree-sitter grammars."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cache
from importlib import import_module

from tree_sitter import Language as Grammar
from tree_sitter import Node, Parser

LONGEST_PARSE = 10.0  # seconds of processor time; a hundredth is enough for code, but some data take hours
_CHUNK = 1 << 12  # bytes that the parser reads at once


def parse(grammars: Sequence[tuple[str, str]], code: bytes) -> Node:
    """Parse source code and return the root of the syntax tree.

    The grammars are tried in order. The tree comes from the first grammar in which the code has no syntax
    errors. If the code has errors in all grammars, the tree comes from the first grammar.

    Args:
        grammars: Tree-sitter grammars, each as the two arguments of `load_grammar`.
        code: The content of a source file.

    Raises:
        TimeoutError: Parsing takes more than `LONGEST_PARSE` seconds of processor time for one grammar.
    """
    roots = []
    for grammar in grammars:
        roots.append(_parse(Parser(load_grammar(*grammar)), code))
        if not roots[-1].has_error:
            return roots[-1]
    return roots[0]


def _parse(parser: Parser, code: bytes) -> Node:
    """Parse source code by one grammar; raise `TimeoutError` after `LONGEST_PARSE` seconds."""
    started = time.process_time()

    def check(offset: int, has_error: bool) -> bool:
        if time.process_time() - started > LONGEST_PARSE:
            raise TimeoutError(f"parsing took more than {LONGEST_PARSE:.0f} s")
        return False

    tree = parser.parse(lambda offset, _: code[offset : offset + _CHUNK], progress_callback=check)
    return tree.root_node


@cache
def load_grammar(module: str, function: str) -> Grammar:
    """Load a tree-sitter grammar.

    Args:
        module: The Python module of the grammar, such as "tree_sitter_go".
        function: The name of a function in this module. The function returns the grammar.
    """
    return Grammar(getattr(import_module(module), function)())
