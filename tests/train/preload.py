"""Loaded once, by the process that all training commands of these tests are copies of."""

import gc

import torch._dynamo  # noqa: F401 (an optimizer loads it)

from tests.train import warm

warm.everything()
gc.freeze()
