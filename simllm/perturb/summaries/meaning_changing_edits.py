"""The kinds of edits that change the meaning of a summary, and the choice of a random edit."""

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
    """Make one edit of a random kind; return the kind and the changed summary, or None if no edit fits."""
    for number in random.permutation(len(KINDS)):
        name = list(KINDS)[number]
        changed = (clean(option) for option in KINDS[name](text, lexicon, random))
        # A `dict` drops repeated texts but, unlike a set, keeps their order, on which the random choice
        # depends.
        options = [option for option in dict.fromkeys(changed) if option not in ("", text)]
        if options:
            return name, options[random.integers(len(options))]
    return None
