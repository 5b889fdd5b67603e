"""A word in the explanation of a score: its contribution to the score, and its match.

The score compares two texts. The match is the most similar word of the other text.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Word:
    """A word of a candidate or a reference, in the explanation of the score of these two texts.

    Attributes:
        text: The word as it stands in the cleaned text.
        contribution: What the word adds to the score of the two texts.
        match: The most similar word of the other text.
        similarity: Cosine between the word and its match, from -1 to 1.
        same_without: Probability that the two texts have the same meaning if this word is left out. It is
            computed twice: with only the word left out, and with its match left out, too. The larger
            probability is stored. None if the model cannot estimate probabilities.
    """

    text: str
    contribution: float
    match: str
    similarity: float
    same_without: float | None = None
