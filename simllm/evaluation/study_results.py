"""The results of a study, as plain data: one metric, one set of pairs, all sets."""

from __future__ import annotations

from dataclasses import dataclass

from simllm.evaluation.study_groups import Group
from simllm.stats.rater_agreement import Agreement

Matrix = list[list[float]]


@dataclass(frozen=True)
class Result:
    """The figures of one metric on one set."""

    metric: str
    spearman: float
    p_value: float
    low: float  # 95% bootstrap interval over pairs
    high: float
    by_rater: tuple[float, float] | None  # the interval over pairs and raters
    kendall: float  # tau-b
    pearson: float
    pairwise_accuracy: float
    quantiles: list[float]  # of the scores: 5, 25, 50, 75 and 95%


@dataclass(frozen=True)
class SetStudy:
    """The results on one set of rated pairs."""

    name: str
    pairs: int
    agreement: Agreement | None  # of the raters; None where there is one
    results: list[Result]  # the best metric first
    clusters: list[int]  # rank of each metric, shared by those that cannot be told apart
    permutation: Matrix  # p-values that two metrics agree equally well with people
    williams: Matrix
    between: Matrix  # Spearman's rho of two metrics' scores
    variants: list[Result]
    variant_clusters: list[int]
    checkpoints: list[tuple[float, Result]]  # updates, and the model then; 0: untrained
    groups: list[Group]
    missing: dict[str, str]  # metric -> what to do to have it on this set
    words: list[str]  # sentences that the numbers support


@dataclass(frozen=True)
class Study:
    """The results on all sets, and the signatures of the metrics."""

    sets: list[SetStudy]
    signatures: dict[str, str]
    missing: dict[str, str]  # metric -> what to do to have it
