"""The rule add-braces for Java: `if` branches and loop bodies get braces."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from simllm.perturb.code.code_unit import CodeUnit, Site, SkippedSite
from simllm.perturb.code.java.java_parsing import JavaUnit, field, find_nodes, has_comment
from simllm.perturb.code.source_edits import Edit

_BODIES = {
    "if_statement": ("consequence", "alternative"),
    "for_statement": ("body",),
    "enhanced_for_statement": ("body",),
    "while_statement": ("body",),
    "do_statement": ("body",),
}


def add_braces(unit: CodeUnit) -> Iterator[Site | SkippedSite]:
    """Find the `if` branches and loop bodies without braces; `else if` stays as it is."""
    assert isinstance(unit, JavaUnit)
    # Always safe, so there are no skipped sites: a body without braces declares no variable.
    for node in find_nodes(unit.root, *_BODIES):
        for name in _BODIES[node.type]:
            body = field(node, name)
            if body is None or body.type in ("block", "if_statement" if name == "alternative" else "block"):
                continue
            yield Site(body, tuple(_braces(unit, node, body)))


def _braces(unit: JavaUnit, node: Node, body: Node) -> Iterator[Edit]:
    """Yield the edits that put braces around `body`, a branch or loop body of `node`."""
    before = [part for part in node.children if part.end_byte <= body.start_byte and not has_comment([part])]
    start, end = before[-1].end_byte, body.end_byte
    # A comment between head and body may be a line comment, so the brace then comes after it.
    if unit.text[start : body.start_byte].strip() or b"\n" not in unit.text[start : body.start_byte]:
        yield Edit(body.start_byte, body.start_byte, (b"{ ",))
        yield Edit(end, end, (b" }",))
    else:
        yield Edit(start, start, (b" {",))
        yield Edit(end, end, (unit.newline + unit.indent_of(node.start_byte) + b"}",))
