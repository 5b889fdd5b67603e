"""Go: the comment right before a function, or before a method in an interface."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from simllm.code.languages.base import Language, Place, beginning, field
from simllm.code.languages.comment_marks import runs, undress_block, undress_lines
from simllm.code.languages.node_path import NodePath

_LINES = re.compile(rb"(?m)^((?:[ \t]*//[^\n]*\n)++)[ \t]*(func\b|[A-Z]\w*\()?")
_BLOCK = re.compile(rb"(?m)^(/\*(?s:.*?)(?:\*/|\Z))[ \t]*\n?(func\b)?")
_FUNCTIONS = frozenset({"function_declaration", "method_declaration", "method_elem"})


def _places(code: bytes) -> Iterator[Place]:
    found = [*runs(code, _LINES), *(runs(code, _BLOCK) if b"*/\nfunc" in code else ())]
    yield from sorted(found, key=lambda place: place.start)


def _function(path: NodePath) -> NodePath | None:
    return beginning(path, _FUNCTIONS)


def _undress(raw: str) -> str:
    if raw.startswith("/*"):
        return undress_block(raw)
    directives = re.compile(r"(?<![ \t])[ \t]*//(?:[a-z]+:[a-z]|nolint|export |line |\+build)[^\n]*\n")
    return undress_lines(directives.sub("", raw), "//")


def _name(node: Node) -> str:
    receiver = re.search(r"\*?\s*(\w+)\s*(?:\[[^\]]*\])?\s*\)\Z", field(node, "receiver")[-1_000:])
    return (f"{receiver[1]}." if receiver else "") + field(node, "name")


LANGUAGE = Language(
    grammars=(("tree_sitter_go", "language"),),
    places=_places,
    function=_function,
    undress=_undress,
    name=_name,
    classes=frozenset({"type_spec"}),
)
