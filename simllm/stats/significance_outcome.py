"""The outcome of a significance test."""

from __future__ import annotations

from typing import NamedTuple


class Outcome(NamedTuple):
    """The outcome of a significance test, such as "mcnemar-exact".

    Attributes:
        df: Degrees of freedom; None if the test has none.
    """

    test: str
    statistic: float
    p: float
    df: int | None = None
