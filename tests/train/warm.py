"""What processes of these tests have loaded before they start: torch, scipy, the lexicon of rewordings.

The lexicon is read once and then shared, and fewer texts than in a real training are counted for the
frequencies of words. Both would take most of the time of trainings as small as these.
"""

import functools

import scipy.stats  # noqa: F401
import torch  # noqa: F401

import train.contrastive.__main__
import train.distill.__main__
import train.pretrain.__main__
import train.release.__main__
from simllm.evaluation import contrast
from simllm.perturb.summaries import lexicon

train.contrastive.batches._FREQUENCY_PAIRS = 500

_load = functools.cache(lexicon.load)


def load(held_out=()):
    return _load(tuple(held_out))


lexicon.load = load


def everything():
    """Read the lexicons that trainings ask for."""
    for held_out in ((), contrast.deciding_word_pairs()):
        load(held_out)
