"""The rule dead-code for Java: methods get `if (false) { throw null; }`, which never runs."""

from __future__ import annotations

from collections.abc import Iterator

from simllm.perturb.code.code_unit import CodeUnit, Site, SkippedSite
from simllm.perturb.code.java.java_parsing import JavaUnit, children, field, find_nodes
from simllm.perturb.code.source_edits import Edit


def dead_code(unit: CodeUnit) -> Iterator[Site | SkippedSite]:
    """Find all methods and constructors with a body; the dead code is inserted at its start."""
    assert isinstance(unit, JavaUnit)
    for node in find_nodes(unit.root, "method_declaration", "constructor_declaration"):
        body = field(node, "body")
        if body is None:
            continue
        first = children(body)[:1]
        at = body.start_byte + 1
        # `this(...)` and `super(...)` must be the first statement.
        if first and first[0].type == "explicit_constructor_invocation":
            at = first[0].end_byte
        indent = unit.indent_of(node.start_byte)
        step = b"\t" if indent.startswith(b"\t") else b"    "
        # Java rejects unreachable statements, but makes an exception for the body of `if (false)` (Java
        # Language Specification, section 14.22). `throw null` compiles whatever the method declares to throw.
        lines = [b"if (false) {", step + b"throw null;", b"}"]
        text = b"".join(unit.newline + indent + step + line for line in lines)
        yield Site(node, (Edit(at, at, (text,)),))
