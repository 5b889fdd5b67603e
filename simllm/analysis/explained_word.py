"""A word in the explanation of a score: its contribution to the score, and its match."""

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
        same_without: Probability that the two texts have the same meaning without this word, or without this
            word and its match, whichever is larger. None if the model cannot estimate probabilities.
    """

    text: str
    contribution: float
    match: str
    similarity: float
    same_without: float | None = None
