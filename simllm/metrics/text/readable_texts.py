"""The policy of all text metrics for texts that a metric cannot read at all.

Every metric reads texts in its own way: ROUGE reads words of Latin letters, BLEU needs four words, and no
metric can read an empty text. A pair with a text that the metric cannot read scores 1 if both texts are equal
up to white space, and 0 otherwise. Such pairs are counted, and a warning tells their number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from simllm.array_types import Floats
from simllm.metrics.interface import ScoreFunction

POLICY = "unread:equal"  # in signatures
ALMOST_ZERO = 1e-30  # nltk writes 1e-78 to 1e-308 where unsmoothed BLEU is 0


def has_text(text: str) -> bool:
    """Return whether a text is more than white space."""
    return bool(text.strip())


@dataclass(frozen=True)
class TextScorer:
    """The scoring function of a text metric, with the policy for texts that the metric cannot read.

    Attributes:
        compute: The scoring function; it never gets empty texts.
        unreadable: What the texts are that the metric cannot read, such as "of fewer than 4 words".
        zero: What it means if two readable texts score 0; empty if nobody needs a warning.
        data: The files and folders on which the scores depend, by what they are; their hashes are part of
            the signature.
    """

    compute: ScoreFunction
    can_read: Callable[[str], bool] = has_text
    unreadable: str = "without words"
    zero: str = ""
    data: Mapping[str, Path] = field(default_factory=dict)

    def __call__(self, candidates: Sequence[str], references: Sequence[str]) -> Floats:
        """Score n candidates, each against its own reference; return (n,) scores."""
        pairs = list(zip(candidates, references, strict=True))
        values = np.zeros(len(pairs))
        if full := [i for i, pair in enumerate(pairs) if all(map(has_text, pair))]:
            values[full] = self.compute([pairs[i][0] for i in full], [pairs[i][1] for i in full])
        for i, (candidate, reference) in enumerate(pairs):
            # A text that the metric can read keeps its own score, which may be below 1 for equal texts
            # (METEOR).
            if candidate.split() == reference.split() and not self.can_read(candidate):
                values[i] = 1.0
        return values

    def warnings(
        self, name: str, candidates: Sequence[str], references: Sequence[str], values: Floats
    ) -> tuple[str, ...]:
        """Return the warnings about n pairs with their (n,) scores; `name` is the name of the metric."""
        pairs = zip(candidates, references, strict=True)
        unread = np.array([not all(map(self.can_read, pair)) for pair in pairs], bool)
        zeros = int((~unread & (np.abs(values) < ALMOST_ZERO)).sum()) if self.zero else 0
        of = f"of {len(values):,} pairs"
        found = []
        if unread.any():
            found.append(
                f"{name}: {unread.sum():,} {of} have a text {self.unreadable}; "
                "they score 1 if both texts are equal, otherwise 0"
            )
        if zeros:
            found.append(f"{name}: {zeros:,} {of} {self.zero}")
        return tuple(found)
