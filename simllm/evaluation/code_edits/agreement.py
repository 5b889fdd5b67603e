"""Agreement of metrics with each other and with exact match, over items and over systems."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from simllm.array_types import Floats
from simllm.stats import resampling
from simllm.stats.correlation import pearson, rank_correlations, resamples

_RESAMPLES = 500  # of items; ranking all edits anew takes most of the time
_LEAST_SYSTEMS = 3


@dataclass(frozen=True)
class ExactMatchAgreement:
    """Agreement of a metric with exact match over edits.

    Attributes:
        rho: Spearman's correlation; NaN if the scores or the exact matches are constant.
        low: The lower end of its 95% interval, by a bootstrap over items, with all systems of an item.
        r: Pearson's correlation, which is the point-biserial one here.
        right: The mean score of the edits that equal the reference; NaN without any.
        wrong: The mean score of the others.
    """

    rho: float
    low: float
    high: float
    r: float
    right: float
    wrong: float


@dataclass(frozen=True)
class Agreement:
    """Spearman's correlations between m metrics, without the baseline.

    Attributes:
        names: The names of the metrics.
        edits: The number of edits: an edit is the score of a system on an item.
        over_edits: (m, m) correlations over the edits that both metrics score.
        systems: The number of systems.
        over_systems: (m, m) correlations of the systems' means; None for fewer than three systems.
        exact_match: For each metric but exact match, its agreement with exact match over edits.
        are_matches_equal: Whether all edits equal their references, or none does: nothing correlates with it.
    """

    names: list[str]
    edits: int
    over_edits: Floats
    systems: int
    over_systems: Floats | None
    exact_match: dict[str, ExactMatchAgreement]
    are_matches_equal: bool


def measure_agreement(scores: Mapping[str, Floats], matches: Floats) -> Agreement:
    """Correlate metrics.

    Args:
        scores: For each metric, the (s, n) scores of s systems on n items; NaN where there is none.
        matches: The (s, n) shares of an item's candidates that equal the reference.
    """
    values = list(scores.values())
    systems, items = matches.shape
    over_systems = None
    if systems >= _LEAST_SYSTEMS:
        known = ~np.isnan(np.stack(values)).any(axis=(0, 1))  # the same items for all
        over_systems = _matrix([value[:, known].mean(axis=1) for value in values] if known.any() else [])
    return Agreement(
        names=list(scores),
        edits=systems * items,
        over_edits=_matrix([value.ravel() for value in values]),
        systems=systems,
        over_systems=over_systems,
        exact_match={
            name: _with_exact_match(value, matches)
            for name, value in scores.items()
            if name.partition("=")[0] != "exact-match"
        },
        are_matches_equal=bool(np.ptp(matches) == 0),
    )


def _matrix(values: Sequence[Floats]) -> Floats:
    """Compute the (m, m) correlations of m arrays of one length, each over the places that both have."""
    found = np.full((len(values), len(values)), np.nan)
    for i, first in enumerate(values):
        for j, second in enumerate(values[: i + 1]):
            known = ~np.isnan(first) & ~np.isnan(second)
            if known.sum() > 1:
                rho = rank_correlations(first[known][None], second[known][None])[0]
                found[i, j] = found[j, i] = rho
    return found


def _with_exact_match(scores: Floats, matches: Floats) -> ExactMatchAgreement:
    """Compare (s, n) scores with (s, n) exact matches, on the items for which each system has a score."""
    known = ~np.isnan(scores).any(axis=0)
    scores, matches = scores[:, known], matches[:, known]
    items = scores.shape[1]
    if items < 2:
        return ExactMatchAgreement(*[math.nan] * 6)
    drawn = []
    # The edits of one item are not independent, so that items are drawn, not edits.
    for rows in resamples(items, _RESAMPLES, np.random.default_rng(resampling.SEED)):
        flat = [np.moveaxis(values[:, rows], 0, 1).reshape(len(rows), -1) for values in (scores, matches)]
        drawn.append(rank_correlations(*flat))
    a, b = scores.ravel(), matches.ravel()
    low, high = resampling.interval(np.concatenate(drawn), items)
    return ExactMatchAgreement(
        rho=float(rank_correlations(a[None], b[None])[0]),
        low=low,
        high=high,
        r=pearson(a, b),
        right=float(a[b == 1].mean()) if (b == 1).any() else math.nan,
        wrong=float(a[b < 1].mean()) if (b < 1).any() else math.nan,
    )
