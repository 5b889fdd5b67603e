"""Lexicons that are loaded once and then shared by all training tests and their processes.

Word frequencies are counted in fewer texts than in a real training. Otherwise, loading lexicons and counting
words would take most of the time of the small trainings in tests. This module also imports slow packages, so
that processes that are forked from this one need not import them.
"""

import functools

import scipy.stats  # noqa: F401
import torch  # noqa: F401

import train.contrastive.__main__
import train.distill.__main__
import train.pretrain.__main__
import train.release.__main__
from simllm.evaluation.contrast import deciding_word_pairs
from simllm.perturb.summaries import lexicon

train.contrastive.batches._FREQUENCY_PAIRS = 500

_load = functools.cache(lexicon.load)


def load(held_out=()):
    return _load(tuple(held_out))


lexicon.load = load


def load_lexicons():
    """Load the lexicons that trainings use, so that forked processes have them."""
    for held_out in ((), deciding_word_pairs()):
        load(held_out)
