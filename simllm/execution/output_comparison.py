"""Comparison of a program's output with the expected output."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from simllm.errors import InputError

MODES = "lines, tokens, exact, float:1e-6"
_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_BLANKS = b" \t\r\f\v"


def comparison(mode: str) -> Callable[[bytes, bytes], str]:
    """Return the function that compares a program's expected output with its actual output.

    The returned function takes the expected and the actual output. Its result is "AC" (accepted) if the
    outputs are equal by the rule `mode`, "PE" (presentation error) if they differ only in white space, and
    "WA" (wrong answer) otherwise.

    Args:
        mode: The rule that decides whether two outputs count as equal:

            - `lines`: All lines are equal. Spaces and tabs at the ends of lines, and empty lines at the end
              of the output, are ignored.
            - `tokens`: All words (parts between white space) are equal.
            - `exact`: All bytes are equal.
            - `float:E`, such as `float:1e-6`: All words are equal, but numbers may have an absolute or
              relative error of up to E. Numbers that are too large for a float (from about 1.8e308) must
              be equal in every digit.

    Raises:
        InputError: The mode is not known.
    """
    equal = {"lines": _equal_lines, "tokens": _equal_tokens, "exact": bytes.__eq__}.get(mode)
    if mode.startswith("float:"):
        tolerance = _tolerance(mode)

        def equal(expected: bytes, actual: bytes) -> bool:
            return _equal_numbers(expected, actual, tolerance)

    if equal is None:
        raise InputError(f"comparison {mode!r}: expected one of {MODES}")

    def compare(expected: bytes, actual: bytes) -> str:
        if equal(expected, actual):
            return "AC"
        return "PE" if b"".join(expected.split()) == b"".join(actual.split()) else "WA"

    return compare


def _tolerance(mode: str) -> float:
    try:
        value = float(mode.removeprefix("float:"))
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise InputError(f"comparison {mode!r}: expected a number such as float:1e-6")
    return value


def _equal_lines(expected: bytes, actual: bytes) -> bool:
    return _lines(expected) == _lines(actual)


def _lines(text: bytes) -> list[bytes]:
    """Split an output into lines; remove spaces and tabs at the ends of lines, and empty lines at the end."""
    lines = [line.rstrip(_BLANKS) for line in text.split(b"\n")]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _equal_tokens(expected: bytes, actual: bytes) -> bool:
    return expected.split() == actual.split()


def _equal_numbers(expected: bytes, actual: bytes, tolerance: float) -> bool:
    a, b = expected.split(), actual.split()
    return len(a) == len(b) and all(_close(x, y, tolerance) for x, y in zip(a, b, strict=True))


def _close(expected: bytes, actual: bytes, tolerance: float) -> bool:
    """Return whether two words are equal, or are numbers that differ by at most `tolerance`.

    The difference may be absolute, or relative to the expected number. No difference is allowed if the
    expected number is too large for a float (from about 1.8e308): the two words must be identical.
    """
    if expected == actual:
        return True
    if not (_NUMBER.fullmatch(expected) and _NUMBER.fullmatch(actual)):
        return False
    a, b = float(expected), float(actual)
    return math.isfinite(a) and abs(a - b) <= tolerance * max(1.0, abs(a))
