"""Word pairs by which the texts of the contrast set differ from their references."""

from __future__ import annotations

import re
from pathlib import Path

from simllm.evaluation.contrast_triples import CONTRAST_SET, load


def deciding_word_pairs(file: Path = CONTRAST_SET) -> set[tuple[str, str]]:
    """Collect the word pairs, such as "minimum" and "maximum", by which the texts of a test set differ.

    A model that is trained without these pairs can be tested on words that it has not seen. Each change is
    compared with its reference, word by word, if both have equally many words; so are the rewordings of
    balanced triples.

    Args:
        file: A file of triples (see `load`); by default, the contrast set.

    Returns:
        Pairs of two words at the same position: the first in a reference, the second in its change or
            rewording. Neither word occurs in the other text.
    """
    triples = load(file)
    pairs = set()
    for reference, form, *others in zip(
        triples.references, triples.forms, triples.changes, triples.rewordings, strict=True
    ):
        # In other forms than "balanced", the rewording is a completely different sentence.
        for other in others[: 2 if form == "balanced" else 1]:
            a, b = (re.findall(r"[\w-]+", text.lower()) for text in (reference, other))
            # With more or fewer words, no word stands opposite another.
            if len(a) == len(b):
                pairs |= {(x, y) for x, y in zip(a, b, strict=True) if x not in b and y not in a}
    return pairs
