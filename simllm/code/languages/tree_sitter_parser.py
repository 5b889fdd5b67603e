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
    """Return the root of the tree from the first grammar without syntax errors, else from the first one.

    TimeoutError after `LONGEST_PARSE` seconds of processor time for one grammar.
    """
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


@cache
def load_grammar(module: str, function: str) -> Grammar:
    """Load a tree-sitter grammar from a function of a module such as "tree_sitter_go"."""
    return Grammar(getattr(import_module(module), function)())
