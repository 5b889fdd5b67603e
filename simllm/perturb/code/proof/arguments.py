"""Random arguments: small values, values from hypothesis, and values near the literals of the function."""

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
    """Random values for one function; the same source and seed give the same values."""

    def __init__(self, source: str, seed: int) -> None:
        self._seed = seed
        self._random = random.Random(f"{seed} {source}")
        found = [_literal(text) for text in _LITERAL.findall(source)]
        # Literals often decide which branch is taken, and so do their neighbours.
        numbers = [near for n in found if isinstance(n, int) for near in (n, n + 1, n - 1, -n)]
        texts = [text for text in found if isinstance(text, str)]
        self._numbers = list(dict.fromkeys(numbers))[:_MOST_LITERALS]
        self._texts = list(dict.fromkeys(texts))[:_MOST_LITERALS]

    def choice(self, values: Iterable[_Value]) -> _Value:
        """Draw one of the values."""
        return self._random.choice(list(values))

    def chance(self, share: float) -> bool:
        """Return True with the probability `share`."""
        return self._random.random() < share

    def integer(self, low: int = -(1 << 63), high: int = (1 << 63) - 1) -> int:
        """Draw an integer from `low` to `high`, including both; small integers are most frequent."""
        kind = self._random.randrange(8)
        if kind < 2:
            value = self.choice((0, 1, -1, 2, *self._numbers))
        elif kind < 6:
            value = self._random.randint(-9, 20) if kind < 4 else self._random.randint(0, 5)
        elif kind == 6:
            value = self._random.randint(-100, 127)
        else:
            value = self.choice((low, high) if self.chance(0.5) else _pool("integers", self._seed))
        # Literals and values of the pool may lie outside of small types such as `byte`.
        return value if low <= value <= high else value % (high - low + 1) + low

    def number(self) -> float:
        """Draw a float; NaN, infinities and -0.0 are frequent."""
        kind = self._random.randrange(3)
        if kind == 0:
            return self.choice(_FLOATS)
        return float(self.integer(-1000, 1000)) if kind == 1 else self.choice(_pool("floats", self._seed))

    def text(self) -> str:
        """Draw a short text, often with string literals of the function."""
        kind = self._random.randrange(3)
        if kind == 0:
            return self.choice((*_TEXTS, *self._texts))
        if kind == 1:
            return "".join(self.items(lambda: self.choice(("a", "b", " ", *self._texts))))
        return self.choice(_pool("texts", self._seed))

    def character(self) -> str:
        """Draw a character, often from a string literal of the function."""
        near = "".join(self._texts)
        return self.choice(near if near and self.chance(0.5) else _CHARACTERS)

    def items(self, make: Callable[[], _Value], unique: bool = False) -> list[_Value]:
        """Draw zero to six items."""
        made = [make() for _ in range(self._random.randint(0, _LONGEST))]
        return list(dict.fromkeys(made)) if unique else made

    def different(self, make: Callable[[], _Value], number: int) -> list[_Value]:
        """Draw at most `number` values with different `repr`, fewer if `make` repeats itself."""
        # Twice as many, because small values repeat themselves; a bound, because `make` may know only a few.
        made = (make() for _ in range(2 * number))
        return list({repr(value): value for value in made}.values())[:number]


def require_hypothesis() -> None:
    """Raise `InputError` if hypothesis is not installed."""
    try:
        import hypothesis  # noqa: F401
    except ImportError:
        raise InputError(missing_package("hypothesis", "code")) from None


@cache
def _pool(kind: str, seed: int) -> tuple[Any, ...]:
    """Draw up to 200 values with hypothesis; the kind is "integers", "floats" or "texts"."""
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
    """Return the value of a Java or Python string or integer literal; None if Python cannot read it."""
    try:
        # Python refuses leading zeros, which are octal in Java.
        return literal_eval(text.lstrip("0") or "0" if text.isdigit() else text)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
