"""Logistic regression of a tool's success on how many places each rule rewrote.

The thesis asks which transformations make repairs fail. A factor is the count of one rule, or the product of
the counts of two or three rules, since rules may harm only together. Each factor has a regression of its own:
with all factors in one model, most studies would have more factors than items.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from simllm.array_types import Floats
from simllm.evaluation.metamorphic.results import SIDES, Recorded
from simllm.stats.significance import holm

MOST_RULES = 3  # of a factor
FEW_ITEMS = 30  # below, errors that are robust to draws being alike come out too small
LEAST_VARIANTS = 6  # that a factor must count in, and also not count in
_LARGEST = 15.0  # difference of log odds between two variants; larger ones stand for infinite ones
_WIDTH = 1.96  # standard errors to either side of a 95% interval


@dataclass(frozen=True)
class Factor:
    """The effect of one factor on success.

    Attributes:
        rules: The one to three rules whose counts are multiplied.
        variants: The number of variants in which all these rules rewrote a place.
        coefficient: The change of the log odds of a success for each unit of the factor.
        odds_ratio: The factor by which the odds of a success change for each unit.
        low: The lower end of the 95% interval of `odds_ratio`; `high` is its upper end.
        p: The p-value of the hypothesis that `coefficient` is 0, from errors that are robust to draws of one
            item being alike.
        holm_p: The p-value after Holm's correction over all factors.
    """

    rules: tuple[str, ...]
    variants: int
    coefficient: float
    odds_ratio: float
    low: float
    high: float
    p: float
    holm_p: float


@dataclass(frozen=True)
class CountRegression:
    """The effects of all factors that could be estimated, the smallest p-value first.

    Attributes:
        variants: The number of variants with answers and counts.
        items: The number of their items.
        left_out: The number of factors without an estimate: too few variants with or without them, or one
            that separates successes from failures.
    """

    variants: int
    items: int
    factors: list[Factor]
    left_out: int


@dataclass(frozen=True)
class _Rows:
    """The answers about n variants.

    Attributes:
        successes: (n, 2) numbers of successes and failures.
        baseline: (n,) the log odds of a success on the original, which tells how hard the item is.
        items: (n,) numbers of the items.
        counts: (n, r) rewritten places by rule.
    """

    successes: Floats
    baseline: Floats
    items: np.ndarray
    counts: Floats


def regress_on_counts(recorded: Recorded, model: str) -> CountRegression | None:
    """Estimate the effect of each factor on a tool's success; None if the counts of places are unknown.

    The log odds of a success on a variant depend on those on the original, and on the factor.
    """
    rules = sorted({rule for counts in recorded.rewritten.values() for rule, n in counts.items() if n})
    rows = _rows(recorded, model, rules)
    if not rules or rows is None:
        return None
    found: list[tuple[tuple[int, ...], int, tuple[float, float, float]]] = []
    left_out = 0
    for chosen in _combinations(len(rules)):
        factor = rows.counts[:, chosen].prod(axis=1)
        present = int((factor > 0).sum())
        if not present:
            # Rules that never meet are no factor.
            continue
        is_varied = min(present, len(factor) - present) >= LEAST_VARIANTS or (
            present >= LEAST_VARIANTS and len(np.unique(factor)) > 2
        )
        estimate = _estimate(rows, factor) if is_varied else None
        if estimate is None:
            left_out += 1
        else:
            found.append((chosen, present, estimate))
    corrected = holm([p for _, _, (_, _, p) in found])
    factors = [
        Factor(
            tuple(rules[at] for at in chosen),
            present,
            coefficient,
            math.exp(coefficient),
            math.exp(coefficient - _WIDTH * error),
            math.exp(coefficient + _WIDTH * error),
            p,
            holm_p,
        )
        for (chosen, present, (coefficient, error, p)), holm_p in zip(found, corrected, strict=True)
    ]
    items = len(np.unique(rows.items))
    return CountRegression(len(rows.items), items, sorted(factors, key=lambda one: one.p), left_out)


def _combinations(rules: int) -> Iterator[tuple[int, ...]]:
    for size in range(1, MOST_RULES + 1):
        yield from combinations(range(rules), size)


def _rows(recorded: Recorded, model: str, rules: Sequence[str]) -> _Rows | None:
    """Collect the answers about each variant; None if there are none with counts."""
    done: dict[tuple[str, int], list[int]] = {}
    originals: dict[str, list[int]] = {}
    for draw in recorded.draws:
        if draw.model == model and not draw.arm and draw.success is not None:
            is_original = draw.side == SIDES[0]
            known = (
                originals.setdefault(draw.id, [0, 0])
                if is_original
                else done.setdefault((draw.id, draw.variant), [0, 0])
            )
            known[not draw.success] += 1
    for (own, arm, item), (original, transformed) in recorded.counts.items():
        if own == model and not arm:
            originals[item] = [original[0], original[1] - original[0]]
            done[item, 0] = [transformed[0], transformed[1] - transformed[0]]
    keys = [key for key in done if key in recorded.rewritten and key[0] in originals]
    if not keys:
        return None
    before = np.array([originals[item] for item, _ in keys], float)
    numbers = {item: number for number, item in enumerate(dict.fromkeys(item for item, _ in keys))}
    return _Rows(
        np.array([done[key] for key in keys], float),
        # Half a success and half a failure more: no odds are infinite.
        np.log((before[:, 0] + 0.5) / (before[:, 1] + 0.5)),
        np.array([numbers[item] for item, _ in keys]),
        np.array([[recorded.rewritten[key].get(rule, 0) for rule in rules] for key in keys], float),
    )


def _estimate(rows: _Rows, factor: Floats) -> tuple[float, float, float] | None:
    """Return coefficient, standard error and p-value of an (n,) factor; None if it cannot be estimated."""
    import statsmodels.api as sm

    design = np.column_stack([np.ones(len(factor)), rows.baseline, factor])
    if not np.ptp(rows.baseline):
        design = design[:, [0, 2]]
    try:
        with warnings.catch_warnings():
            # Perfect separation shows as a large coefficient.
            warnings.simplefilter("ignore")
            model = sm.GLM(rows.successes, design, family=sm.families.Binomial())
            fitted = model.fit(cov_type="cluster", cov_kwds={"groups": rows.items})
    except (ValueError, ArithmeticError, np.linalg.LinAlgError):
        return None
    coefficient, error, p = (float(part[-1]) for part in (fitted.params, fitted.bse, fitted.pvalues))
    is_finite = all(map(math.isfinite, (coefficient, error, p))) and error > 0
    return (coefficient, error, p) if is_finite and abs(coefficient) * np.ptp(factor) < _LARGEST else None
