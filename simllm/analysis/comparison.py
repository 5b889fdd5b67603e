"""Comparison of systems by their scores, with intervals and significance.

Two systems are compared on the same references, in two ways. The paired bootstrap counts how often a
resample of the items reverses the difference. The paired permutation test swaps the two systems item
by item, and counts how often the difference is as large. The p-values are two-sided and corrected
for the number of comparisons by Holm's method.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from simllm.errors import InputError
from simllm.metric import SimLLM
from simllm.stats.paired_tests import SEED, bootstrap_p, holm, interval, resampled_means, sign_flip_p

Values = NDArray[np.float64]
OVER_REFERENCES: dict[str, Callable[..., Values]] = {"max": np.max, "mean": np.mean}


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
    random = np.random.default_rng(SEED)
    means = resampled_means(values, random)
    pairs = list(combinations(range(len(names)), 2))
    bootstrap = holm([bootstrap_p(means[:, a] - means[:, b], n) for a, b in pairs])
    permutation = holm([sign_flip_p(values[a] - values[b], random) for a, b in pairs])
    if n == 1:
        means[:] = np.nan  # one item says nothing about others
    return Comparison(
        [System(name, float(values[i].mean()), *interval(means[:, i])) for i, name in enumerate(names)],
        [
            Difference(
                names[a], names[b], float((values[a] - values[b]).mean()),
                *interval(means[:, a] - means[:, b]), by_bootstrap, by_permutation,
            )
            for (a, b), by_bootstrap, by_permutation in zip(pairs, bootstrap, permutation, strict=True)
        ],
        (np.sign(values[:, None] - values[None]).mean(-1) + 1) / 2,
        n,
        signature,
    )  # fmt: skip
