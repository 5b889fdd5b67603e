"""The results of a study, as plain data that `study.json` stores completely."""

from __future__ import annotations

from dataclasses import dataclass

from simllm.evaluation.study_groups import Group
from simllm.stats.rater_agreement import RaterAgreement

Matrix = list[list[float]]


@dataclass(frozen=True)
class MetricResult:
    """The figures of one metric on one set.

    Attributes:
        metric: The name of the metric.
        spearman: Spearman's rho.
        p_value: Two-sided p-value of rho.
        low: Lower bound of the 95% bootstrap interval over pairs.
        high: Upper bound of that interval.
        by_rater: The 95% interval over pairs and raters; None for a single rater.
        kendall: Kendall's tau-b.
        pearson: Pearson's r.
        pairwise_accuracy: Share of pairs of items that scores and ratings order in the same way.
        quantiles: Quantiles of the scores: 5, 25, 50, 75 and 95%.
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
    """The results on one set of rated pairs."""

    name: str
    pairs: int
    agreement: RaterAgreement | None  # of the raters; None where there is one
    results: list[MetricResult]  # the best metric first
    clusters: list[int]  # rank of each metric, shared by those that cannot be told apart
    permutation: Matrix  # p-values that two metrics agree equally well with people
    williams: Matrix
    between: Matrix  # Spearman's rho of two metrics' scores
    variants: list[MetricResult]
    variant_clusters: list[int]
    checkpoints: list[tuple[float, MetricResult]]  # updates, and the model then; 0: untrained
    groups: list[Group]
    missing: dict[str, str]  # metric -> what to do to have it on this set
    words: list[str]  # sentences that the numbers support


@dataclass(frozen=True)
class Study:
    """The results on all sets, and the signatures of the metrics."""

    sets: list[SetStudy]
    signatures: dict[str, str]
    missing: dict[str, str]  # metric -> what to do to have it
