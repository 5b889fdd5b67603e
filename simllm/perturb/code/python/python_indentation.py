"""The lines of Python code, and whether they can safely be indented further."""

from __future__ import annotations

from simllm.perturb.code.code_unit import CodeUnit
from simllm.perturb.code.python.python_parsing import captures


class Lines:
    """The lines of parsed code; rows count from 0.

    Attributes:
        starts: The first byte of each line.
    """

    def __init__(self, unit: CodeUnit) -> None:
        self._unit = unit
        self.starts = [0]
        at = unit.text.find(b"\n")
        while at >= 0:
            self.starts.append(at + 1)
            at = unit.text.find(b"\n", at + 1)
        self._in_strings: set[int] = set()
        for node in captures(unit, "(string) @string").get("string", []):
            self._in_strings.update(range(node.start_point.row + 1, node.end_point.row + 1))

    def text(self, row: int) -> bytes:
        """Return the text of a line without its ending."""
        end = self.starts[row + 1] if row + 1 < len(self.starts) else len(self._unit.text)
        return self._unit.text[self.starts[row] : end].rstrip(b"\r\n")

    def indent(self, row: int) -> bytes:
        """Return the white space at the beginning of a line."""
        line = self.text(row)
        return line[: len(line) - len(line.lstrip(b" \t\f"))]

    def may_move(self, row: int) -> bool:
        """Return whether a line can be indented without changing the meaning of the code."""
        # The white space at the beginning of a line inside a string belongs to the string. An empty line
        # needs no indentation.
        return row not in self._in_strings and bool(self.text(row).strip())
