"""Word pairs by which the texts of the contrast set, a test set, differ from their references.

The contrast set tests whether metrics notice a changed meaning, as from "minimum" to "maximum". A model that
is trained without these pairs can be tested on words that it has not seen.
"""

from __future__ import annotations

import re
from pathlib import Path

from simllm.evaluation.contrast_triples import CONTRAST_SET, load


def deciding_word_pairs(file: Path = CONTRAST_SET) -> set[tuple[str, str]]:
    """Collect the word pairs, such as "minimum" and "maximum", by which the texts of a test set differ.

    By default, the test set is the contrast set. It has triples: a reference, a rewording (same meaning), and
    a change (another meaning). For the reference "returns the minimum" and the change "returns the maximum",
    the pair is ("minimum", "maximum"). To test a model on words that it has not seen, train it without these
    pairs.

    Each change is compared with its reference, word by word. A rewording is compared only in triples whose
    `form` is "balanced". In other triples, the rewording is a completely different sentence. A change or a
    rewording is left out if it has more or fewer words than its reference.

    Args:
        file: A JSON-lines file with triples (see `load`).

    Returns:
        Pairs of two words at the same position: the first in a reference, the second in its change or
        rewording. The first word does not occur in that change or rewording. The second word does not occur
        in the reference.
    """
    triples = load(file)
    pairs = set()
    for reference, form, *others in zip(
        triples.references, triples.forms, triples.changes, triples.rewordings, strict=True
    ):
        # In other forms than "balanced", the rewording is a completely different sentence.
        for other in others[: 2 if form == "balanced" else 1]:
            a, b = (re.findall(r"[\w-]+", text.lower()) for text in (reference, other))
            if len(a) == len(b):
                pairs |= {(x, y) for x, y in zip(a, b, strict=True) if x not in b and y not in a}
    return pairs
