"""The rule dead-code for Python: functions get `if False: pass`, which never runs."""

from __future__ import annotations

from collections.abc import Iterator

from simllm.perturb.code.code_unit import CodeUnit, Site, SkippedSite
from simllm.perturb.code.python.python_docstring_parameters import docstring
from simllm.perturb.code.python.python_parsing import captures, field, is_inline, starts_line, token
from simllm.perturb.code.source_edits import Edit


def add_dead_code(unit: CodeUnit) -> Iterator[Site | SkippedSite]:
    """Find all functions; the dead code is inserted before the first statement after the docstring."""
    for function in reversed(captures(unit, "(function_definition) @function").get("function", [])):
        body = field(function, "body")
        statements = [child for child in body.named_children if child.type != "comment"]
        if is_inline(unit, token(function, ":"), statements[0]):
            yield SkippedSite(function, "the body stands in the line of the head")
            continue
        first = statements[0]
        # A docstring counts as such only if it is the first statement.
        if docstring(function) is not None:
            if len(statements) == 1:
                yield SkippedSite(function, "the body is a docstring")
                continue
            first = statements[1]
        if not starts_line(unit, first):
            yield SkippedSite(function, "the first statement does not begin a line")
            continue
        indent = unit.indent_of(first.start_byte)
        step = indent.removeprefix(unit.indent_of(function.start_byte)) or b"    "
        lines = (b"if False:", indent + step + b"pass", indent)
        yield Site(function, (Edit(first.start_byte, first.start_byte, (unit.newline.join(lines),)),))
