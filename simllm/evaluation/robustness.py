"""Robustness of metrics to edits of summaries (a metamorphic test).

An edit that keeps the meaning should lower the score little; an edit that changes the meaning should
lower it much. Each summary gets one edit of each kind that is possible. The edited summary is scored
against the original one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from simllm.errors import InputError
from simllm.metrics.protocol import ScoreFunction
from simllm.perturb.summaries import light_edits, meaning_changes
from simllm.perturb.summaries.lexicon import Lexicon
from simllm.text_cleaning import clean

_MOST_WORDS = 200  # longer summaries are cut, because the time for edits grows with the square
# Kinds of edits, and what happens to the meaning.
KINDS = {
    **dict.fromkeys(light_edits.KINDS, "kept"),
    **dict.fromkeys(meaning_changes.KINDS, "changed"),
}


@dataclass(frozen=True)
class Edits:
    """n edits of m summaries.

    Attributes:
        summaries: m summaries.
        summary: (n,) index of the summary of each edit.
        texts: n edited summaries.
        kinds: n kinds of edits.
    """

    summaries: list[str]
    summary: NDArray[np.int64]
    texts: list[str]
    kinds: list[str]

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(frozen=True)
class Failure:
    """A summary whose change of meaning does not score below an edit that keeps the meaning."""

    summary: str
    kept: str
    kept_score: float
    changed: str
    changed_score: float

    def __str__(self) -> str:
        kept, changed = (
            f'"{t}" {s:.3f}' for t, s in ((self.kept, self.kept_score), (self.changed, self.changed_score))
        )
        return f'"{self.summary}": {changed} is not below {kept}'


@dataclass(frozen=True)
class Robustness:
    """The robustness of a metric.

    Attributes:
        drop: For each kind, the mean loss of score; an unrelated summary has loss 1.
        auc: Probability that an edit that keeps the meaning scores higher than one that changes it.
        auc_of: For each kind, the same for edits of this kind only, against all edits with the
            opposite effect on the meaning.
        failures: The worst failures.
    """

    drop: dict[str, float]
    auc: float
    auc_of: dict[str, float]
    failures: list[Failure]


def make_edits(summaries: Sequence[str], lexicon: Lexicon, seed: int) -> Edits:
    """Make one edit of each possible kind for each summary.

    Args:
        summaries: The summaries; equal ones count once, and longer ones are cut to 200 words.
        lexicon: The word lists.
        seed: The same seed gives the same edits.

    Raises:
        InputError: The seed is negative, there are fewer than two different summaries, or no summary
            can be changed in meaning.
    """
    if seed < 0:
        raise InputError(f"seed {seed}: expected 0 or a positive number")
    cut = (" ".join(clean(text).split()[:_MOST_WORDS]) for text in summaries)
    texts = [text for text in dict.fromkeys(cut) if text]
    if len(texts) < 2:
        raise InputError(f"{len(texts)} different summaries; the relations need at least 2")
    random = np.random.default_rng(seed)
    edits = []
    for number, text in enumerate(texts):
        for kind, make in {**light_edits.KINDS, **meaning_changes.KINDS}.items():
            edited = make(text, lexicon, random)
            if kind in meaning_changes.KINDS:  # light edits may change only what cleaning removes
                edited = map(clean, edited)
            options = [edit for edit in dict.fromkeys(edited) if edit not in ("", text)]
            if options:
                edits.append((number, options[random.integers(len(options))], kind))
    if len({KINDS[kind] for _, _, kind in edits}) < 2:
        raise InputError("no edit that changes the meaning fits any of the summaries")
    indices, edited_texts, kinds = zip(*edits, strict=True)
    return Edits(texts, np.array(indices), list(edited_texts), list(kinds))


def measure_robustness(score: ScoreFunction, edits: Edits, examples: int) -> Robustness:
    """Measure the robustness of a metric.

    Args:
        score: The scoring function of the metric.
        edits: The edits.
        examples: Number of worst failures in the result.
    """
    m = len(edits.summaries)
    unrelated = [edits.summaries[(i + m // 2) % m] for i in range(m)]
    scores = score(
        [*edits.summaries, *unrelated, *edits.texts],
        [*edits.summaries, *edits.summaries, *(edits.summaries[i] for i in edits.summary)],
    )
    same, other, edited = scores[:m], scores[m : 2 * m], scores[2 * m :]
    span = same.mean() - other.mean()
    drops = (same[edits.summary] - edited) / (span if span > 0 else np.nan)
    kinds = np.array(edits.kinds)
    kept = np.array([KINDS[kind] == "kept" for kind in edits.kinds])
    present = [kind for kind in KINDS if kind in edits.kinds]
    return Robustness(
        {kind: float(drops[kinds == kind].mean()) for kind in present},
        _auc(edited[kept], edited[~kept]),
        {
            kind: _auc(edited[kinds == kind], edited[~kept])
            if KINDS[kind] == "kept"
            else _auc(edited[kept], edited[kinds == kind])
            for kind in present
        },
        _failures(edits, edited, kept)[:examples],
    )


def _auc(higher: NDArray[np.float64], lower: NDArray[np.float64]) -> float:
    """Return the share of pairs of two samples in which the first value is higher; ties count half."""
    return float(stats.mannwhitneyu(higher, lower).statistic / (len(higher) * len(lower)))


def _failures(edits: Edits, scores: NDArray[np.float64], kept: NDArray[np.bool_]) -> list[Failure]:
    """Return the worst failure of each summary that has one, sorted by score difference, largest first.

    A failure is an edit that changes the meaning and scores higher than an edit that keeps it.

    Args:
        edits: n edits.
        scores: (n,) scores of the edits.
        kept: (n,) whether the edit keeps the meaning.
    """
    failures = []
    for number, summary in enumerate(edits.summaries):
        own = np.flatnonzero(edits.summary == number)
        if not 0 < kept[own].sum() < len(own):
            continue
        low = min(own[kept[own]], key=lambda i: scores[i])
        high = max(own[~kept[own]], key=lambda i: scores[i])
        if scores[high] >= scores[low]:
            failure = Failure(
                summary, edits.texts[low], float(scores[low]), edits.texts[high], float(scores[high])
            )
            failures.append(failure)
    return sorted(failures, key=lambda failure: failure.kept_score - failure.changed_score)
