"""Random argument values for functions that are run to compare their behaviour.

The values are of three kinds: small values, random values from the library hypothesis, and values close to
the literals in the source of the function.
"""

from __future__ import annotations

import random
import re
from ast import literal_eval
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, TypeVar

from simllm.errors import InputError
from simllm.io.packages import missing_package

LARGE = 10_000  # a loop over that many items is fast, a loop over a random int may be endless
_LITERAL = re.compile(r"\"(?:\\.|[^\"\\\n])*+\"?|'(?:\\.|[^'\\\n])*+'?|(?<![\w.])\d+(?![\w.])")
_MOST_LITERALS = 12
_LONGEST = 6  # items of a container, or parts of a text
_CHARACTERS = "".join(map(chr, range(32, 127))) + "\0\n\t\xe9\u2713"
_FLOATS = (0.0, -0.0, 0.5, 1.0, -1.0, 1e30, float("nan"), float("inf"), float("-inf"))
_TEXTS = ("", "a", "abba", "12", "-7", "a b c")
_POOL = 200  # number of values of each kind from hypothesis

_Value = TypeVar("_Value")


class DrawnValues:
    """Generator of random argument values for one function.

    The same function and seed always give the same values.

    Args:
        source: The source of the function. Literals in it are used as values, because they often decide which
            branch is taken.
        seed: The random seed.
    """

    def __init__(self, source: str, seed: int) -> None:
        self._seed = seed
        self._random = random.Random(f"{seed} {source}")
        found = [_literal(text) for text in _LITERAL.findall(source)]
        numbers = [near for n in found if isinstance(n, int) for near in (n, n + 1, n - 1, -n)]
        texts = [text for text in found if isinstance(text, str)]
        self._numbers = list(dict.fromkeys(numbers))[:_MOST_LITERALS]
        self._texts = list(dict.fromkeys(texts))[:_MOST_LITERALS]

    def choice(self, values: Iterable[_Value]) -> _Value:
        """Return one of the given values at random."""
        return self._random.choice(list(values))

    def chance(self, share: float) -> bool:
        """Return True with the probability `share`, and False otherwise."""
        return self._random.random() < share

    def integer(self, low: int = -(1 << 63), high: int = (1 << 63) - 1) -> int:
        """Return a random integer from `low` to `high`, including both; small integers are most frequent."""
        kind = self._random.randrange(8)
        if kind < 2:
            value = self.choice((0, 1, -1, 2, *self._numbers))
        elif kind < 6:
            value = self._random.randint(-9, 20) if kind < 4 else self._random.randint(0, 5)
        elif kind == 6:
            value = self._random.randint(-100, 127)
        else:
            value = self.choice((low, high) if self.chance(0.5) else _pool("integers", self._seed))
        return value if low <= value <= high else value % (high - low + 1) + low

    def number(self) -> float:
        """Return a random float; NaN, infinities and -0.0 are frequent."""
        kind = self._random.randrange(3)
        if kind == 0:
            return self.choice(_FLOATS)
        return float(self.integer(-1000, 1000)) if kind == 1 else self.choice(_pool("floats", self._seed))

    def text(self) -> str:
        """Return a random short text, often with string literals from the source of the tested function."""
        kind = self._random.randrange(3)
        if kind == 0:
            return self.choice((*_TEXTS, *self._texts))
        if kind == 1:
            return "".join(self.items(lambda: self.choice(("a", "b", " ", *self._texts))))
        return self.choice(_pool("texts", self._seed))

    def character(self) -> str:
        """Return a random character, often from a string literal in the source of the tested function."""
        near = "".join(self._texts)
        return self.choice(near if near and self.chance(0.5) else _CHARACTERS)

    def items(self, make: Callable[[], _Value], unique: bool = False) -> list[_Value]:
        """Return a list of zero to six random items.

        Args:
            make: A function that returns a random item.
            unique: Whether to remove duplicates.
        """
        made = [make() for _ in range(self._random.randint(0, _LONGEST))]
        return list(dict.fromkeys(made)) if unique else made

    def different(self, make: Callable[[], _Value], number: int) -> list[_Value]:
        """Return distinct random values. Two values with the same `repr` count as equal.

        Args:
            make: A function that returns a random value.
            number: The largest number of values. There may be fewer if `make` repeats itself.
        """
        made = (make() for _ in range(2 * number))
        return list({repr(value): value for value in made}.values())[:number]


def require_hypothesis() -> None:
    """Check that the library hypothesis, which generates random values, is installed.

    Raises:
        InputError: The library is not installed.
    """
    try:
        import hypothesis  # noqa: F401
    except ImportError:
        raise InputError(missing_package("hypothesis", "code")) from None


@cache
def _pool(kind: str, seed: int) -> tuple[Any, ...]:
    """Return up to 200 random values of one kind, generated by the library hypothesis.

    Args:
        kind: "integers", "floats" or "texts".
        seed: The random seed.
    """
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import seed as seeded
    from hypothesis import strategies as st

    strategies: dict[str, st.SearchStrategy[Any]] = {
        "integers": st.integers(-(1 << 70), 1 << 70),
        "floats": st.floats(-100, 100),
        "texts": st.text(_CHARACTERS, max_size=8),
    }
    drawn = []

    @seeded(seed)
    @settings(
        max_examples=_POOL,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategies[kind])
    def collect(value: object) -> None:
        drawn.append(value)

    collect()
    return tuple(drawn)


def _literal(text: str) -> object:
    """Convert the source text of a string or integer literal, in Java or Python code, to its value.

    The text is evaluated as Python code, and leading zeros of an integer are ignored.

    Returns:
        A str or an int; None if the text is not a valid literal in Python.
    """
    try:
        return literal_eval(text.lstrip("0") or "0" if text.isdigit() else text)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
