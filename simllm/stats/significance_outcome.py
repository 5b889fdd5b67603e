"""The outcome of a significance test: the name of the test, its statistic and its p-value."""

from __future__ import annotations

from typing import NamedTuple


class Outcome(NamedTuple):
    """The outcome of a significance test.

    Attributes:
        test: The name of the test, such as "mcnemar-exact".
        statistic: The test statistic.
        p: The two-sided p-value.
        df: Degrees of freedom; None if the test has none.
    """

    test: str
    statistic: float
    p: float
    df: int | None = None
