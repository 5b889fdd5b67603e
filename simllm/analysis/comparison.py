"""Comparison of systems by their scores, with intervals and significance.

Two systems are compared on the same references, in two ways. The paired bootstrap counts how often a
resample of the items reverses the difference. The paired permutation test swaps the two systems item
by item, and counts how often the difference is as large. The p-values are two-sided and corrected
for the number of comparisons by Holm's method.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from simllm.errors import InputError
from simllm.metric import SimLLM

Values = NDArray[np.float64]
OVER_REFERENCES: dict[str, Callable[..., Values]] = {"max": np.max, "mean": np.mean}
_RESAMPLES, _SEED = 10_000, 12345
_MOST_EXACT = 13  # items whose 2^n swaps are at most as many as the resamples
_AT_ONCE = 10_000_000  # numbers held in memory


@dataclass(frozen=True)
class System:
    """One system's mean score and its 95% bootstrap interval, NaN for one item."""

    name: str
    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Difference:
    """The mean of system a minus that of system b, its interval (NaN for one item), corrected p-values."""

    a: str
    b: str
    difference: float
    low: float
    high: float
    bootstrap_p: float
    permutation_p: float


@dataclass(frozen=True)
class Comparison:
    """Several systems on the same n items."""

    systems: list[System]
    differences: list[Difference]
    wins: Values  # (s, s) share of items on which the row's system scores higher; ties count half
    n: int
    signature: str


def compare(
    metric: SimLLM, systems: dict[str, Sequence[str]], references: Sequence[Sequence[str]], over: str = "max"
) -> Comparison:
    """Compare systems, n candidates each, against one or more lists of n references.

    With several references a candidate's score is the `over` (max, mean) of its scores.
    Raises InputError for fewer than two systems, no items, or lists of different lengths.
    """
    if over not in OVER_REFERENCES:
        raise InputError(f"over {over!r}: expected one of {', '.join(OVER_REFERENCES)}")
    sizes = {len(texts) for texts in (*systems.values(), *references)}
    if len(systems) < 2:
        raise InputError("expected two or more different systems")
    if len(sizes) != 1 or sizes == {0}:
        raise InputError("expected as many candidates of each system as references, and at least one")
    ways = [(system, texts) for texts in references for system in systems.values()]
    scores = metric.score([t for system, _ in ways for t in system], [t for _, texts in ways for t in texts])
    shaped = scores.values.reshape(len(references), len(systems), -1)
    signature = scores.signature
    if len(references) > 1:
        signature += f"|references:{len(references)}|over:{over}"
    return compared(dict(zip(systems, OVER_REFERENCES[over](shaped, axis=0), strict=True)), signature)


def compared(scores: dict[str, Values], signature: str = "") -> Comparison:
    """Compare systems by their (n,) scores on the same items."""
    names, values = list(scores), np.stack(list(scores.values()))
    n = values.shape[1]
    random = np.random.default_rng(_SEED)
    means = np.empty((_RESAMPLES, len(names)))
    for rows in _batches(n):  # each resample is how often it holds each item
        counts = random.multinomial(n, np.full(n, 1 / n), size=len(rows))
        means[rows] = counts @ values.T / n
    pairs = list(combinations(range(len(names)), 2))
    bootstrap = holm([_reversed(means[:, a] - means[:, b], n) for a, b in pairs])
    permutation = holm([_permuted(values[a] - values[b], random) for a, b in pairs])
    if n == 1:
        means[:] = np.nan  # one item says nothing about others
    return Comparison(
        [System(name, float(values[i].mean()), *_interval(means[:, i])) for i, name in enumerate(names)],
        [
            Difference(
                names[a], names[b], float((values[a] - values[b]).mean()),
                *_interval(means[:, a] - means[:, b]), by_bootstrap, by_permutation,
            )
            for (a, b), by_bootstrap, by_permutation in zip(pairs, bootstrap, permutation, strict=True)
        ],
        (np.sign(values[:, None] - values[None]).mean(-1) + 1) / 2,
        n,
        signature,
    )  # fmt: skip


def holm(p_values: Sequence[float] | Values) -> list[float]:
    """Correct p-values for their number (Holm, "A simple sequentially rejective procedure", 1979)."""
    corrected, least = [0.0] * len(p_values), 0.0
    for rank, i in enumerate(np.argsort(p_values, kind="stable")):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[i]))
        corrected[i] = least
    return corrected


def swaps(n: int, random: np.random.Generator) -> Iterator[Values]:
    """Yield, in batches, rows of n ones and zeros: which items to swap.

    These are all 2^n rows for at most 13 items, else 10,000 random ones.
    """
    if n <= _MOST_EXACT:
        yield (np.arange(2**n)[:, None] >> np.arange(n) & 1).astype(np.float64)
        return
    for rows in _batches(n):
        yield random.integers(0, 2, (len(rows), n), np.int8).astype(np.float64)


def permutation_p(extreme: Values, n: int) -> Values:
    """Turn the number of `swaps` of n items at least as extreme as the data into p-values.

    Of all swaps, one is the data. Beside random swaps the data count as one more.
    """
    return extreme / 2**n if n <= _MOST_EXACT else (extreme + 1) / (_RESAMPLES + 1)


def _batches(n: int) -> Iterator[range]:
    """Split the resamples of n items into batches of bounded memory."""
    size = max(1, min(500, _AT_ONCE // n))
    return (range(start, min(start + size, _RESAMPLES)) for start in range(0, _RESAMPLES, size))


def _interval(values: Values) -> tuple[float, float]:
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)


def _reversed(differences: Values, n: int) -> float:
    """Two-sided p-value of a bootstrap of n items: twice the rarer side of zero, counting the data.

    It is not below that of a sign test whose n items all agree. The resamples of few items cannot
    reverse a difference that has the same sign in all of them, however often one draws.
    """
    rarer = min((differences <= 0).sum(), (differences >= 0).sum())
    return min(1.0, max(2 * float(rarer + 1) / (len(differences) + 1), 2.0 ** (1 - n)))


def _permuted(differences: Values, random: np.random.Generator) -> float:
    """Two-sided p-value of a sign-flip test of (n,) differences."""
    total = differences.sum()
    least = abs(total) - 1e-12 * np.abs(differences).sum()
    extreme = sum(
        (np.abs(total - 2 * swapped @ differences) >= least).sum()
        for swapped in swaps(len(differences), random)
    )
    return float(permutation_p(np.array(extreme), len(differences)))
