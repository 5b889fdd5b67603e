"""Robustness of metrics to edits of summaries, a test by metamorphic relations.

An edit that keeps the meaning should lower a score little, an edit that changes it, much. Of every
summary one edit of each kind that fits is made, and scored against the summary itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from simllm.errors import InputError
from simllm.metrics.protocol import Score
from simllm.perturb.summaries import light_edits, meaning_changes
from simllm.perturb.summaries.lexicon import Lexicon
from simllm.text import clean

_MOST_WORDS = 200  # of a summary; a longer text is cut, as the time for its edits grows with the square
KINDS = {
    **dict.fromkeys(light_edits.KINDS, "kept"),
    **dict.fromkeys(meaning_changes.KINDS, "changed"),
}  # -> the meaning is


@dataclass(frozen=True)
class Edits:
    """n edits of m summaries."""

    summaries: list[str]  # (m,)
    of: NDArray[np.int64]  # (n,) which summary each is of
    texts: list[str]  # (n,)
    kinds: list[str]  # (n,)

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(frozen=True)
class Failure:
    """A change of meaning that scores as high as an edit of the same summary that keeps it."""

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
    """How one metric takes the edits."""

    drop: dict[str, float]  # kind -> mean loss of score, in units of the loss to an unrelated summary
    auc: float  # how often an edit that keeps the meaning scores higher than one that changes it
    auc_of: dict[str, float]  # kind -> the same of this kind's edits, against all of the other sort
    failures: list[Failure]  # the worst


def edits(summaries: Sequence[str], lexicon: Lexicon, seed: int) -> Edits:
    """Draw one edit of each kind that fits a summary; the same edits for the same seed.

    Texts are cut to 200 words. Raises InputError for a negative seed, fewer than two different
    summaries, or if no summary can be changed in meaning.
    """
    if seed < 0:
        raise InputError(f"seed {seed}: expected a number from 0 on")
    cut = (" ".join(clean(text).split()[:_MOST_WORDS]) for text in summaries)
    texts = [text for text in dict.fromkeys(cut) if text]
    if len(texts) < 2:
        raise InputError(f"{len(texts)} different summaries; the relations need at least 2")
    random = np.random.default_rng(seed)
    found = []
    for number, text in enumerate(texts):
        for kind, make in {**light_edits.KINDS, **meaning_changes.KINDS}.items():
            made = make(text, lexicon, random)
            cleaned = (
                map(clean, made) if kind in meaning_changes.KINDS else made
            )  # the others may be about case
            options = [edit for edit in dict.fromkeys(cleaned) if edit not in ("", text)]
            if options:
                found.append((number, options[random.integers(len(options))], kind))
    if len({KINDS[kind] for _, _, kind in found}) < 2:
        raise InputError("no edit that changes the meaning fits any of the summaries")
    of, edited, kinds = zip(*found, strict=True)
    return Edits(texts, np.array(of), list(edited), list(kinds))


def robustness(score: Score, made: Edits, examples: int) -> Robustness:
    """Measure how a metric takes the edits; the result has the `examples` worst failures."""
    m = len(made.summaries)
    unrelated = [made.summaries[(i + m // 2) % m] for i in range(m)]
    scored = score(
        [*made.summaries, *unrelated, *made.texts],
        [*made.summaries, *made.summaries, *(made.summaries[i] for i in made.of)],
    )
    same, other, edited = scored[:m], scored[m : 2 * m], scored[2 * m :]
    span = same.mean() - other.mean()
    drops = (same[made.of] - edited) / (span if span > 0 else np.nan)
    kinds = np.array(made.kinds)
    kept = np.array([KINDS[kind] == "kept" for kind in made.kinds])
    present = [kind for kind in KINDS if kind in made.kinds]
    return Robustness(
        {kind: float(drops[kinds == kind].mean()) for kind in present},
        _auc(edited[kept], edited[~kept]),
        {
            kind: _auc(edited[kinds == kind], edited[~kept])
            if KINDS[kind] == "kept"
            else _auc(edited[kept], edited[kinds == kind])
            for kind in present
        },
        _failures(made, edited, kept)[:examples],
    )


def _auc(higher: NDArray[np.float64], lower: NDArray[np.float64]) -> float:
    """Compute the share of pairs in which the first is higher; ties count half."""
    return float(stats.mannwhitneyu(higher, lower).statistic / (len(higher) * len(lower)))


def _failures(made: Edits, edited: NDArray[np.float64], kept: NDArray[np.bool_]) -> list[Failure]:
    """Find each summary's worst pair of edits, if the wrong one scores as high; the widest gaps first."""
    found = []
    for number, summary in enumerate(made.summaries):
        own = np.flatnonzero(made.of == number)
        if not 0 < kept[own].sum() < len(own):
            continue
        low = min(own[kept[own]], key=lambda i: edited[i])
        high = max(own[~kept[own]], key=lambda i: edited[i])
        if edited[high] >= edited[low]:
            failure = Failure(
                summary, made.texts[low], float(edited[low]), made.texts[high], float(edited[high])
            )
            found.append(failure)
    return sorted(found, key=lambda failure: failure.kept_score - failure.changed_score)
