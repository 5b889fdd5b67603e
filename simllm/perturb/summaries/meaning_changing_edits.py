"""The kinds of edits that change the meaning of a summary, and the choice of a random edit.

Each kind of edit, such as adding a negation, is a function. It yields one edited text for each place in the
summary where the edit is possible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from simllm.perturb.summaries.lexicon import Lexicon
from simllm.perturb.summaries.negation_edits import negations
from simllm.perturb.summaries.numerals import numbers
from simllm.perturb.summaries.omitted_phrases import parts
from simllm.perturb.summaries.opposite_and_neighbour_words import neighbours, opposites
from simllm.perturb.summaries.swapped_noun_phrases import agents, roles
from simllm.text_cleaning import clean

KINDS: dict[str, Callable[[str, Lexicon, np.random.Generator], Iterator[str]]] = {
    "opposite": opposites,
    "neighbour": neighbours,
    "number": numbers,
    "negation": negations,
    "roles": roles,
    "agents": agents,
    "parts": parts,
}


def change(text: str, lexicon: Lexicon, random: np.random.Generator) -> tuple[str, str] | None:
    """Change the meaning of a summary by one edit of a random kind.

    Args:
        text: The cleaned summary.
        lexicon: The word lists.
        random: The generator that chooses the kind of edit and the place in the text.

    Returns:
        The kind of edit, such as "negation", and the changed summary; None if no edit fits.
    """
    for number in random.permutation(len(KINDS)):
        name = list(KINDS)[number]
        changed = (clean(option) for option in KINDS[name](text, lexicon, random))
        options = [option for option in dict.fromkeys(changed) if option not in ("", text)]
        if options:
            return name, options[random.integers(len(options))]
    return None
