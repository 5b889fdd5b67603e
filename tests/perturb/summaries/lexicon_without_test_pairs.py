"""The lexicon as training uses it: without the word pairs that are kept for tests."""

import numpy as np

from simllm.evaluation.contrast import deciding_word_pairs
from simllm.perturb.summaries import lexicon
from simllm.perturb.summaries.meaning_changes import KINDS
from simllm.text_cleaning import clean

LEXICON = lexicon.load(deciding_word_pairs())


def possible_changes(kind, text):
    """Return all texts that a kind of change of meaning makes of a text, over many random seeds."""
    edit = KINDS[kind]
    found = (option for seed in range(50) for option in edit(text, LEXICON, np.random.default_rng(seed)))
    return {clean(option) for option in found}
