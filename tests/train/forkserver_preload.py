"""Modules imported once, in the server process that all training commands of the tests are forked from."""

import gc

import accelerate  # noqa: F401
import torch._dynamo  # noqa: F401 (an optimizer loads it)

from tests.train import shared_lexicon

shared_lexicon.load_lexicons()
gc.freeze()
