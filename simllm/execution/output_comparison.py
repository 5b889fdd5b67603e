"""Comparison of a program's output with the expected output."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from itertools import zip_longest

from simllm.errors import InputError

MODES = "lines, tokens, exact, float:1e-6"
# A number of its own, which x1 and 1.2.3 do not hold. Each part can match in one way only, so that the time
# is linear in the length of a word.
_NUMBER = re.compile(
    rb"(?<![\w.\x80-\xff])[+-]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d++)?(?!\.?[\w\x80-\xff])"
)
_WORD = re.compile(rb"\S+")
_BLANKS = b" \t\r\f\v"
_WHITE_SPACE = _BLANKS + b"\n"


def comparison(mode: str) -> Callable[[bytes, bytes], str]:
    """Return the function that compares a program's expected output with its actual output.

    Its result is "AC" (accepted) if the outputs are equal, "PE" (presentation error) if they differ only in
    white space, and "WA" (wrong answer) otherwise.

    Args:
        mode: The rule that decides whether two outputs count as equal:

            - `lines`: All lines are equal, without spaces and tabs at their ends and empty lines at the end.
            - `tokens`: All words (parts between white space) are equal.
            - `exact`: All bytes are equal.
            - `float:E`, such as `float:1e-6`: All words are equal, but numbers, also inside words such as
              `[1.5,`, may have an absolute or relative error of up to E. Numbers that are too large for a
              float (from about 1.8e308) must be equal in every digit.

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
        without = (text.translate(None, _WHITE_SPACE) for text in (expected, actual))
        return "PE" if next(without) == next(without) else "WA"

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
    """Split into lines without spaces and tabs at their ends and without empty lines at the end."""
    lines = [line.rstrip(_BLANKS) for line in text.split(b"\n")]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _equal_tokens(expected: bytes, actual: bytes) -> bool:
    return all(a == b for a, b in _pairs(expected, actual))


def _equal_numbers(expected: bytes, actual: bytes, tolerance: float) -> bool:
    return all(_close(a, b, tolerance) for a, b in _pairs(expected, actual))


def _pairs(expected: bytes, actual: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Return the words of two outputs in pairs, one at a time, because there may be millions of words."""
    a, b = (map(re.Match[bytes].group, _WORD.finditer(text)) for text in (expected, actual))
    return zip_longest(a, b, fillvalue=b"")


def _close(expected: bytes, actual: bytes, tolerance: float) -> bool:
    """Return whether two words are equal, apart from numbers that differ by at most `tolerance`."""
    if expected == actual:
        return True
    read, there = 0, 0
    for a, b in zip_longest(_NUMBER.finditer(expected), _NUMBER.finditer(actual)):
        if a is None or b is None or expected[read : a.start()] != actual[there : b.start()]:
            return False
        if a[0] != b[0] and not _near(float(a[0]), float(b[0]), tolerance):
            return False
        read, there = a.end(), b.end()
    return expected[read:] == actual[there:]


def _near(expected: float, actual: float, tolerance: float) -> bool:
    # From about 1.8e308 a number is infinite as a float, so it must be equal in every digit.
    return math.isfinite(expected) and abs(expected - actual) <= tolerance * max(1.0, abs(expected))
