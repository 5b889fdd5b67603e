"""The rewrite rule dead-code for Java: methods get `if (false) { throw null; }`, which never runs."""

from __future__ import annotations

from collections.abc import Iterator

from simllm.perturb.code.code_unit import CodeUnit, Site, SkippedSite
from simllm.perturb.code.java.java_parsing import JavaUnit, children, field, find_nodes
from simllm.perturb.code.source_edits import Edit


def dead_code(unit: CodeUnit) -> Iterator[Site | SkippedSite]:
    """Find all methods and constructors, and make the edits that insert dead code at their start.

    The dead code is `if (false) { throw null; }`. In a constructor that begins with `this(...)` or
    `super(...)`, it is inserted after this call.

    Yields:
        For each method or constructor with a body, a `Site`: a place in the code, with the edit that rewrites
        it. It is always safe to insert this code. Therefore, no `SkippedSite` (a place that is unsafe to
        rewrite) is yielded.
    """
    assert isinstance(unit, JavaUnit)
    for node in find_nodes(unit.root, "method_declaration", "constructor_declaration"):
        body = field(node, "body")
        if body is None:
            continue
        first = children(body)[:1]
        at = body.start_byte + 1
        if first and first[0].type == "explicit_constructor_invocation":
            at = first[0].end_byte
        indent = unit.indent_of(node.start_byte)
        step = b"\t" if indent.startswith(b"\t") else b"    "
        lines = [b"if (false) {", step + b"throw null;", b"}"]
        text = b"".join(unit.newline + indent + step + line for line in lines)
        yield Site(node, (Edit(at, at, (text,)),))
