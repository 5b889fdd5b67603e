"""The results of a study, as plain data for the file `study.json`."""

from __future__ import annotations

from dataclasses import dataclass

from simllm.evaluation.metric_study.correlation_by_group import Group
from simllm.stats.rater_agreement import RaterAgreement

Matrix = list[list[float]]


@dataclass(frozen=True)
class MetricResult:
    """The agreement of one metric with the human ratings of one set of pairs.

    Attributes:
        spearman: Spearman's rho between scores and mean ratings.
        p_value: Two-sided p-value of rho.
        low: Lower bound of rho's 95% interval, from a bootstrap over pairs.
        high: Upper bound of that interval.
        by_rater: The bounds of a second 95% interval of rho, which allows for other raters as well as other
            pairs. None if there are fewer than two raters or six pairs.
        kendall: Kendall's tau-b between scores and mean ratings.
        pearson: Pearson's r between scores and mean ratings.
        pairwise_accuracy: The share, from 0 to 1, of comparisons between two rated pairs in which the scores
            agree with the ratings: both put the same pair higher, or both see a tie.
        quantiles: The 5, 25, 50, 75 and 95% quantiles of the scores.
    """

    metric: str
    spearman: float
    p_value: float
    low: float
    high: float
    by_rater: tuple[float, float] | None
    kendall: float
    pearson: float
    pairwise_accuracy: float
    quantiles: list[float]


@dataclass(frozen=True)
class SetStudy:
    """The results of a study on one set of rated pairs, for m metrics.

    Attributes:
        agreement: The agreement between the raters; None if it is unknown, for example for a single rater.
        results: The results of the m metrics, the best first. `clusters`, `permutation`, `williams` and
            `between` have the metrics in the same order.
        clusters: The ranks of the m metrics.
        permutation: (m, m) p-values of a permutation test: entry (i, j) tests whether the metrics i and j
            correlate equally with the human ratings.
        williams: (m, m) p-values of Williams' test, which compares the same correlations as `permutation`.
        between: (m, m) Spearman's rho between the scores of the metrics i and j.
        variant_clusters: The ranks of the variants, like `clusters`.
        checkpoints: The number of training updates and the result of the untrained model and of each
            checkpoint.
        missing: The metrics that are unavailable on this set.
        words: The conclusions as sentences.
    """

    name: str
    pairs: int
    agreement: RaterAgreement | None
    results: list[MetricResult]
    clusters: list[int]
    permutation: Matrix
    williams: Matrix
    between: Matrix
    variants: list[MetricResult]
    variant_clusters: list[int]
    checkpoints: list[tuple[float, MetricResult]]
    groups: list[Group]
    missing: dict[str, str]
    words: list[str]


@dataclass(frozen=True)
class Study:
    """The results of a study on several sets; `missing` are the metrics that are unavailable on all sets."""

    sets: list[SetStudy]
    signatures: dict[str, str]
    missing: dict[str, str]
