"""The rewrite rule add-braces for Java: `if` branches and loop bodies get braces."""

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
    """Find all `if` branches and loop bodies without braces, and make the edits that add braces.

    An `if` directly after an `else` gets no braces: `else if` stays as it is.

    Yields:
        For each such branch or body, a `Site`: a place in the code, with the edits that rewrite it. It is
        always safe to add braces. Therefore, no `SkippedSite` (a place that is unsafe to rewrite) is yielded.
    """
    assert isinstance(unit, JavaUnit)
    for node in find_nodes(unit.root, *_BODIES):
        for name in _BODIES[node.type]:
            body = field(node, name)
            if body is None or body.type in ("block", "if_statement" if name == "alternative" else "block"):
                continue
            yield Site(body, tuple(_braces(unit, node, body)))


def _braces(unit: JavaUnit, node: Node, body: Node) -> Iterator[Edit]:
    """Yield the edits that put braces around the branch of an `if` or the body of a loop.

    Args:
        unit: The parsed code.
        node: The `if` statement or the loop.
        body: The branch or the body, a statement without braces.
    """
    before = [part for part in node.children if part.end_byte <= body.start_byte and not has_comment([part])]
    start, end = before[-1].end_byte, body.end_byte
    if unit.text[start : body.start_byte].strip() or b"\n" not in unit.text[start : body.start_byte]:
        yield Edit(body.start_byte, body.start_byte, (b"{ ",))
        yield Edit(end, end, (b" }",))
    else:
        yield Edit(start, start, (b" {",))
        yield Edit(end, end, (unit.newline + unit.indent_of(node.start_byte) + b"}",))
