"""Robustness of metrics: how the score of a summary falls when the summary is edited.

This is a metamorphic test, which needs no human ratings. Each summary is edited once by each kind of edit
(such as "typo" or "negation") that can be applied to it. The metric scores the edited summary against the
original. The score should fall little if the edit keeps the meaning, and much if the edit changes the
meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simllm.errors import InputError
from simllm.metrics.interface import ScoreFunction
from simllm.perturb.summaries import meaning_changes, rewording
from simllm.perturb.summaries.lexicon import Lexicon
from simllm.stats.classification import area_under_roc
from simllm.text_cleaning import clean

_MOST_WORDS = 200  # longer summaries are cut, because the time for edits grows with the square
FEW = 10  # summaries, below which single edits decide on the figures
# For each kind of edit, whether the meaning is kept or changed.
KINDS = {**dict.fromkeys(rewording.KINDS, "kept"), **dict.fromkeys(meaning_changes.KINDS, "changed")}


@dataclass(frozen=True)
class Edits:
    """n edited versions of m summaries.

    Attributes:
        summaries: m original summaries.
        summary: (n,) indices: for each edited summary, the index of its original in `summaries`.
        texts: n edited summaries.
        kinds: n kinds of edit, such as "typo" or "negation".
    """

    summaries: list[str]
    summary: NDArray[np.int64]
    texts: list[str]
    kinds: list[str]

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(frozen=True)
class Failure:
    """An error of a metric: an edit that changes the meaning scores as high as one that keeps it, or higher.

    Attributes:
        summary: The original summary.
        kept: The summary after an edit that keeps the meaning.
        kept_score: The score of `kept` against the original summary.
        changed: The summary after an edit that changes the meaning.
        changed_score: The score of `changed` against the original summary.
    """

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
    """The results of the robustness test for one metric.

    Attributes:
        drop: For each kind of edit, the mean decrease of the score. With a drop of 0, the score stays the
            same; with a drop of 1, the edited summary scores as low as an unrelated summary. NaN if, on
            average, a summary scores no higher against itself than against an unrelated summary.
        auc: Probability that a random edit that keeps the meaning scores higher than a random edit that
            changes the meaning.
        auc_of: The same probability for each kind of edit, which is compared with all edits of the other
            sort.
        failures: The metric's errors, the worst first.
    """

    drop: dict[str, float]
    auc: float
    auc_of: dict[str, float]
    failures: list[Failure]


def make_edits(summaries: Sequence[str], lexicon: Lexicon, seed: int) -> Edits:
    """Edit each summary once by each kind of edit that can be applied to it.

    If a kind of edit can be applied in several places or ways, one of them is chosen at random.

    Args:
        summaries: The summaries. Equal summaries are used once, and long ones are cut to 200 words.
        lexicon: The word lists with synonyms, opposites and so on.
        seed: The seed of the random choices, 0 or a positive number.

    Raises:
        InputError: The seed is negative, there are fewer than two distinct summaries, or no edit that changes
            the meaning can be applied to any summary.
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
        for kind, make in {**rewording.KINDS, **meaning_changes.KINDS}.items():
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
    """Test how the scores of a metric react to edits of summaries.

    Args:
        score: The metric's scoring function, which takes n candidates and n references.
        edits: The edited summaries.
        examples: The largest number of failures to list in the result.
    """
    m = len(edits.summaries)
    # Half the list away: neighbours may be about the same project.
    unrelated = [edits.summaries[(i + m // 2) % m] for i in range(m)]
    # In one call, so that a metric can put all pairs into batches.
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
        area_under_roc(edited[kept], edited[~kept]),
        {
            kind: area_under_roc(edited[kinds == kind], edited[~kept])
            if KINDS[kind] == "kept"
            else area_under_roc(edited[kept], edited[kinds == kind])
            for kind in present
        },
        _failures(edits, edited, kept)[:examples],
    )


def _failures(edits: Edits, scores: NDArray[np.float64], kept: NDArray[np.bool_]) -> list[Failure]:
    """Find the summaries whose (n,) scores are wrong, the worst first; `kept` tells for each edit whether it
    keeps the meaning.
    """
    failures = []
    for number, summary in enumerate(edits.summaries):
        own = np.flatnonzero(edits.summary == number)
        # Only edits of the same summary are compared, and these are all of one sort.
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
