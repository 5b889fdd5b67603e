"""Values that hypothesis draws, the same ones for the same seed."""

from __future__ import annotations

import re
from ast import literal_eval
from typing import TYPE_CHECKING, TypeVar

from simllm.errors import InputError

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

_Value = TypeVar("_Value")
_LITERAL = re.compile(r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|(?<![\w.])\d+(?![\w.])")
_MOST_LITERALS = 12
CHARACTERS = "".join(map(chr, range(32, 127))) + "\n\té–✓😀"
LARGE = 10_000  # a loop over that many items is fast, a loop over a random int may be endless


def draw(strategy: SearchStrategy[_Value], number: int, seed: int) -> list[_Value]:
    """Draw values from a strategy.

    Args:
        strategy: The strategy.
        number: The number of values; there are fewer if the strategy has fewer.
        seed: The seed of the choice.
    """
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import seed as seeded

    drawn: list[_Value] = []

    @seeded(seed)
    @settings(
        max_examples=number,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(value: _Value) -> None:
        drawn.append(value)

    collect()
    return drawn


def require_hypothesis() -> None:
    """Check that hypothesis is installed.

    Raises:
        InputError: It is not.
    """
    try:
        import hypothesis  # noqa: F401
    except ImportError:
        raise InputError("inputs are drawn by hypothesis: pip install 'simllm[code]'") from None


def find_literals(source: str) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return the ints and the texts that stand in a source; inputs like them reach more branches."""
    found = [_value(literal) for literal in _LITERAL.findall(source)]
    numbers = dict.fromkeys(near for n in found if isinstance(n, int) for near in (n, n + 1, n - 1, -n))
    texts = dict.fromkeys(text for text in found if isinstance(text, str))
    return tuple(numbers)[:_MOST_LITERALS], tuple(texts)[:_MOST_LITERALS]


def _value(literal: str) -> object:
    try:
        return literal_eval(literal.lstrip("0") or "0" if literal.isdigit() else literal)
    except (SyntaxError, ValueError):
        return None
