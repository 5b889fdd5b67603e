"""Comparison of systems by their scores, with intervals and significance tests.

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
    """The mean score of a system and its 95% bootstrap interval (NaN for one item)."""

    name: str
    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Difference:
    """The mean of system `a` minus that of system `b`, with interval (NaN for one item) and p-values."""

    a: str
    b: str
    difference: float
    low: float
    high: float
    bootstrap_p: float
    permutation_p: float


@dataclass(frozen=True)
class Comparison:
    """The comparison of s systems on the same n items.

    Attributes:
        systems: The mean score of each system.
        differences: The difference of each two systems.
        wins: (s, s) share of items on which the system of the row scores higher; ties count half.
        n: Number of items.
        signature: The signature of the metric.
    """

    systems: list[System]
    differences: list[Difference]
    wins: Values
    n: int
    signature: str


def compare(
    metric: SimLLM, systems: dict[str, Sequence[str]], references: Sequence[Sequence[str]], over: str = "max"
) -> Comparison:
    """Compare systems by their scores against references.

    Args:
        metric: The metric.
        systems: n candidates of each system, by its name.
        references: One or more lists of n references.
        over: `max` or `mean`: how the scores against several references are combined.

    Raises:
        InputError: There are fewer than two systems or no items, or the lists differ in length.
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
    return compare_scores(dict(zip(systems, OVER_REFERENCES[over](shaped, axis=0), strict=True)), signature)


def compare_scores(scores: dict[str, Values], signature: str = "") -> Comparison:
    """Compare systems by their scores.

    Args:
        scores: (n,) scores of each system on the same items, by its name.
        signature: The signature of the metric.
    """
    names, values = list(scores), np.stack(list(scores.values()))
    n = values.shape[1]
    random = np.random.default_rng(SEED)
    means = resampled_means(values, random)
    pairs = list(combinations(range(len(names)), 2))
    bootstrap = holm([bootstrap_p(means[:, a] - means[:, b], n) for a, b in pairs])
    permutation = holm([sign_flip_p(values[a] - values[b], random) for a, b in pairs])
    if n == 1:
        means[:] = np.nan  # one item gives no interval
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
