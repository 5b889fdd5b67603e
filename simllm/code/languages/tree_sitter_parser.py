"""Parsing of source code by tree-sitter, with a limit of time, and loading of its grammars."""

from __future__ import annotations

import time
from functools import cache
from importlib import import_module

from tree_sitter import Language as Grammar
from tree_sitter import Node, Parser

LONGEST_PARSE = 10.0  # seconds of processor time; a hundredth is enough for code, but some data take hours
_CHUNK = 1 << 12  # bytes that the parser reads at once


def parse(parser: Parser, code: bytes) -> Node:
    """Parse source code and return the root of the syntax tree.

    Raises:
        TimeoutError: Parsing takes more than `LONGEST_PARSE` seconds of processor time.
    """
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
