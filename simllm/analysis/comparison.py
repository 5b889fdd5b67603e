"""Comparison of systems (summarizers) by their scores, with intervals and significance tests.

Each pair of systems is compared by the difference between their mean scores on the same items. An item has a
reference, and a candidate from each system. Two tests are used. The paired bootstrap test counts how often
random resamples of the items reverse the sign of the difference. The paired permutation test swaps the two
systems' scores for random sets of items, and counts how often the difference after a swap is at least as
large as the observed difference. The p-values are two-sided. Holm's method corrects them for the number of
pairs of systems.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import combinations

import numpy as np

from simllm.array_types import Floats
from simllm.errors import InputError
from simllm.io.tables import format_count
from simllm.metric import SimLLM
from simllm.metrics.interface import Example, Metric, MetricScores
from simllm.scoring.scores import OUTPUTS, Scores
from simllm.scoring.sentences import divide_pairs
from simllm.stats.resampling import (
    LEAST_ITEMS,
    SEED,
    bootstrap_p,
    interval,
    least_p,
    resampled_means,
    sign_flip_p,
)
from simllm.stats.significance import holm, paired_effect
from simllm.text_cleaning import clean

OVER_REFERENCES: dict[str, Callable[..., Floats]] = {"max": np.max, "mean": np.mean}


@dataclass(frozen=True)
class System:
    """The mean score of one system.

    Attributes:
        name: The name of the system.
        mean: The mean score over all items.
        low: Lower bound of the mean's 95% bootstrap interval; NaN if it would look too certain.
        high: Upper bound of the mean's 95% bootstrap interval; NaN if it would look too certain.
    """

    name: str
    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Difference:
    """The difference between the mean scores of two systems.

    Attributes:
        a: The name of the first system.
        b: The name of the second system.
        difference: Mean score of `a` minus mean score of `b`.
        low: Lower bound of the difference's 95% bootstrap interval; NaN if it would look too certain.
        high: Upper bound of the difference's 95% bootstrap interval; NaN if it would look too certain.
        bootstrap_p: The p-value of the paired bootstrap test, corrected by Holm's method.
        permutation_p: The p-value of the paired permutation test, corrected by Holm's method.
        effect: Cohen's d of paired values: the mean of the items' differences, divided by their standard
            deviation. NaN if all differences are equal.
        detectable: The smallest difference that a study with as many items would find significant in 80% of
            cases. NaN if it has no meaning (see `simllm.stats.significance.paired_effect`).
    """

    a: str
    b: str
    difference: float
    low: float
    high: float
    bootstrap_p: float
    permutation_p: float
    effect: float
    detectable: float

    @property
    def p(self) -> float:
        """The larger p-value: a difference counts as significant only if both tests agree."""
        return max(self.bootstrap_p, self.permutation_p)


@dataclass(frozen=True)
class Comparison:
    """The comparison of s systems on the same n items.

    Attributes:
        systems: The mean score of each system.
        differences: The difference between the mean scores, for each pair of systems, or for each system and
            the baseline.
        wins: (s, s) matrix. An entry is the share of items for which the row's system scores higher than the
            column's system. An item with equal scores counts as half.
        n: Number of items.
        signature: Text that names everything that can change a score, such as the model.
        warnings: What makes the figures meaningless, such as too few items.
    """

    systems: list[System]
    differences: list[Difference]
    wins: Floats
    n: int
    signature: str
    warnings: tuple[str, ...] = ()


def compare(
    metric: SimLLM,
    systems: Mapping[str, Sequence[str]],
    references: Sequence[Sequence[str]],
    over: str = "max",
    baseline: str | None = None,
) -> Comparison:
    """Score the texts of several systems against references, and compare the systems.

    Args:
        metric: The metric.
        systems: The n texts (candidates) of each system, by its name.
        references: One or more lists of n references. Reference i of each list belongs to text i of each
            system.
        over: The way to combine a candidate's scores against several references: "max" or "mean".
        baseline: The name of the system with which all others are compared. None compares all pairs.

    Raises:
        InputError: `over` or the baseline is unknown, there are fewer than two systems or no items, or the
            lists of candidates and references differ in length.
    """
    scores = score_systems(metric, systems, references, over)
    signature = next(iter(scores.values())).signature
    return compare_scores({name: own.values for name, own in scores.items()}, signature, baseline)


def score_systems(
    metric: SimLLM,
    systems: Mapping[str, Sequence[str]],
    references: Sequence[Sequence[str]],
    over: str = "max",
) -> dict[str, Scores]:
    """Score the texts of several systems against references; arguments and errors are those of `compare`.

    Returns:
        The scores of each system's n candidates, by its name. The counts, such as the number of truncated
        texts, are totals over all systems. With several lists of references, there is no calibration.
    """
    _check_systems(systems, references, over)
    ways = [(system, texts) for texts in references for system in systems.values()]
    pairs = [pair for system, texts in ways for pair in zip(system, texts, strict=True)]
    # One call for all systems: texts that occur several times are encoded only once.
    scores = metric.score([candidate for candidate, _ in pairs], [reference for _, reference in pairs])
    # Scores of equal pairs can differ by rounding, which would count as wins: all get that of the first.
    places: dict[Hashable, int] = {}
    first = [places.setdefault(key, place) for place, key in enumerate(_what_is_scored(metric, pairs))]
    outputs = {name: values[first] for name in OUTPUTS if (values := getattr(scores, name)) is not None}
    scores = replace(scores, values=scores.values[first], **outputs)
    if len(references) > 1:
        signature = f"{scores.signature}|references:{len(references)}|over:{over}"
        # Percentiles were measured for scores against one reference; a maximum over several is higher.
        scores = replace(scores, signature=signature, calibration=None)
    join = partial(OVER_REFERENCES[over], axis=0)
    values = join(scores.values.reshape(len(references), len(systems), -1))
    joined = {name: join(all_.reshape(len(references), len(systems), -1)) for name, all_ in outputs.items()}
    return {
        system: replace(scores, values=own, **{name: each[number] for name, each in joined.items()})
        for number, (system, own) in enumerate(zip(systems, values, strict=True))
    }


def _what_is_scored(metric: SimLLM, pairs: Sequence[tuple[str, str]]) -> Iterator[Hashable]:
    """Yield for each pair what its score depends on: the clauses, or the cleaned texts.

    If a text is empty after cleaning, it is the words of both texts before.
    """
    n, texts = len(pairs), [pair[side] for side in (0, 1) for pair in pairs]
    divided = divide_pairs(texts) if metric.long == "sentences" else {}
    for i, pair in enumerate(pairs):
        cleaned = tuple(map(clean, pair))
        if i in divided:
            yield tuple((tuple(map(clean, each.texts)), each.length) for each in (divided[i], divided[n + i]))
        else:
            yield cleaned if all(cleaned) else tuple(tuple(text.split()) for text in pair)


def _check_systems(
    systems: Mapping[str, Sequence[str]], references: Sequence[Sequence[str]], over: str
) -> None:
    if over not in OVER_REFERENCES:
        raise InputError(f"over {over!r}: expected one of {', '.join(OVER_REFERENCES)}")
    sizes = {len(texts) for texts in (*systems.values(), *references)}
    if len(systems) < 2:
        raise InputError("expected two or more different systems")
    if not references:
        raise InputError("expected one or more lists of references")
    if len(sizes) != 1 or sizes == {0}:
        raise InputError("expected as many candidates of each system as references, and at least one")


def make_examples(
    candidates: Sequence[str],
    references: Sequence[str],
    sources: Sequence[tuple[str, str | None]] | None,
) -> list[Example]:
    """Make n examples; `sources` are the pieces of code with their languages, if there are any."""
    code: Sequence[tuple[str | None, str | None]] = sources or [(None, None)] * len(references)
    return [
        Example(candidate, reference, source, language)
        for candidate, reference, (source, language) in zip(candidates, references, code, strict=True)
    ]


def score_systems_by(
    metric: Metric,
    systems: Mapping[str, Sequence[str]],
    references: Sequence[Sequence[str]],
    over: str = "max",
    sources: Sequence[tuple[str, str | None]] | None = None,
) -> tuple[dict[str, Floats], MetricScores]:
    """Score the texts of several systems by any metric; higher scores are better.

    `sources` are the n pieces of code that the texts describe, with their languages if known. Returns the
    (n,) scores of each system, with NaN where a metric gives none, and the scores of all pairs.
    """
    _check_systems(systems, references, over)
    examples = [
        example
        for texts in references
        for system in systems.values()
        for example in make_examples(system, texts, sources)
    ]
    scores = metric.score(examples)
    values = np.asarray(scores.values).reshape(len(references), len(systems), -1)
    joined = OVER_REFERENCES[over](values, axis=0)
    return dict(zip(systems, joined, strict=True)), scores


def compare_scores(scores: dict[str, Floats], signature: str = "", baseline: str | None = None) -> Comparison:
    """Compare systems by scores that are already computed.

    Args:
        scores: The (n,) scores of each system, by its name, on the same n items.
        signature: The signature of the scores.
        baseline: The name of the system with which all others are compared. None compares all pairs.

    Raises:
        InputError: No system is called like the baseline.
    """
    names, values = list(scores), np.stack(list(scores.values()))
    n = values.shape[1]
    random = np.random.default_rng(SEED)
    # All systems share their resamples, because the tests are paired.
    means = resampled_means(values, random)
    pairs = list(combinations(range(len(names)), 2))
    if baseline is not None:
        if baseline not in names:
            raise InputError(f"baseline {baseline!r}: expected one of the systems {', '.join(names)}")
        # Fewer comparisons need less correction. A positive difference is a lead over the baseline.
        base = names.index(baseline)
        pairs = [(other, base) for other in range(len(names)) if other != base]
    bootstrap = [bootstrap_p(means[:, a] - means[:, b], n) for a, b in pairs]
    permutation = [sign_flip_p(values[a] - values[b], random) for a, b in pairs]
    corrected = zip(pairs, holm(bootstrap), holm(permutation), strict=True)
    return Comparison(
        [System(name, float(values[i].mean()), *interval(means[:, i], n)) for i, name in enumerate(names)],
        [
            Difference(
                names[a], names[b], float((values[a] - values[b]).mean()),
                *interval(means[:, a] - means[:, b], n), by_bootstrap, by_permutation,
                *paired_effect(values[a] - values[b], len(pairs)),
            )
            for (a, b), by_bootstrap, by_permutation in corrected
        ],
        (np.sign(values[:, None] - values[None]).mean(-1) + 1) / 2,
        n,
        signature,
        tuple(_warnings(scores, n)),
    )  # fmt: skip


def _warnings(scores: dict[str, Floats], n: int) -> Iterator[str]:
    """Yield warnings about too few items, and about systems with the same scores."""
    if few := _few_items(n):
        yield few
    for a, b in combinations(scores, 2):
        if np.array_equal(scores[a], scores[b]):
            both = f"{a} and {b} have the same scores on all items"
            yield f"{both}; are they the same texts, or does the metric not tell them apart?"


@cache
def _few_items(n: int) -> str:
    """Return a warning if n items are too few for any significant difference, otherwise ""."""
    least = least_p(n)  # of both tests
    if least <= 0.05:
        return ""
    intervals = "; no intervals are given" if n < LEAST_ITEMS else ""
    items = format_count(n, "item")
    return f"{items}: no difference can be significant, since p is at least {least:.3g}{intervals}"


def about_few_items(comparisons: Mapping[str, Comparison]) -> list[str]:
    """Return a warning about comparisons of the same systems by several figures, if their items are too few.

    If the figures differ in their numbers of items, each has a warning of its own.
    """
    few = {name: _few_items(one.n) for name, one in comparisons.items()}
    if len(set(few.values())) == 1:
        return [message for message in set(few.values()) if message]
    return [f"{name}: {message}" for name, message in few.items() if message]
