"""Which of several systems scores higher, and may it be chance?

A pair of systems is compared on the same references: by a paired bootstrap (how often does
a resample of the items reverse the difference?) and by a paired permutation test (how often
is a difference as large when systems are swapped at random, item by item?). The p-values
are two-sided and corrected for the number of comparisons by Holm's method.
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
_AT_ONCE = 10_000_000  # numbers held in memory


@dataclass(frozen=True)
class System:
    """One system's mean score and its 95% bootstrap interval."""

    name: str
    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Difference:
    """Of two systems: a's mean minus b's, its interval, and corrected p-values."""

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
    bootstrap = holm([_reversed(means[:, a] - means[:, b]) for a, b in pairs])
    permutation = holm([_permuted(values[a] - values[b], random) for a, b in pairs])
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
    """Correct p-values for their number (Holm, 1979)."""
    corrected, least = [0.0] * len(p_values), 0.0
    for rank, i in enumerate(np.argsort(p_values, kind="stable")):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[i]))
        corrected[i] = least
    return corrected


def _batches(n: int) -> Iterator[range]:
    """The resamples, as many of n items at once as fit into memory."""
    size = max(1, min(100, _AT_ONCE // n))
    return (range(start, min(start + size, _RESAMPLES)) for start in range(0, _RESAMPLES, size))


def _interval(values: Values) -> tuple[float, float]:
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)


def _reversed(differences: Values) -> float:
    """Two-sided p-value of a bootstrap: twice the rarer side of zero, counting the data itself."""
    rarer = min((differences <= 0).sum(), (differences >= 0).sum())
    return min(1.0, 2 * float(rarer + 1) / (len(differences) + 1))


def _permuted(differences: Values, random: np.random.Generator) -> float:
    """Two-sided p-value of a sign-flip test of (n,) differences, counting the data itself."""
    observed, extreme = abs(differences.sum()) * (1 - 1e-12), 1
    for rows in _batches(len(differences)):
        signs = random.integers(0, 2, (len(rows), len(differences)), np.int8) * 2 - 1
        extreme += int((np.abs(signs @ differences) >= observed).sum())
    return extreme / (_RESAMPLES + 1)
