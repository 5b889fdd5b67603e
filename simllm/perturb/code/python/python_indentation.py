"""The lines of Python code: their text and indentation, and whether they can safely be indented further."""

from __future__ import annotations

from simllm.perturb.code.code_unit import CodeUnit
from simllm.perturb.code.python.python_parsing import captures


class Lines:
    """The lines of parsed code: their text and indentation.

    The argument `row` of the methods is the number of a line, counted from 0.

    Attributes:
        starts: The index of the first byte of each line.
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
        """Return the text of the line with the number `row`, counted from 0, without the line ending."""
        end = self.starts[row + 1] if row + 1 < len(self.starts) else len(self._unit.text)
        return self._unit.text[self.starts[row] : end].rstrip(b"\r\n")

    def indent(self, row: int) -> bytes:
        """Return the white space at the beginning of the line with the number `row`, counted from 0."""
        line = self.text(row)
        return line[: len(line) - len(line.lstrip(b" \t\f"))]

    def may_move(self, row: int) -> bool:
        """Return whether a line can be indented without changing the meaning of the code.

        The result is False for a line that begins inside a string, because indenting it would change the
        string. The result is also False for an empty line, which needs no indentation.

        Args:
            row: The number of the line, counted from 0.
        """
        return row not in self._in_strings and bool(self.text(row).strip())
