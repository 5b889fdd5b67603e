"""Loaded once, by the process that all training commands of these tests are copies of."""

from tests.train import warm

warm.everything()
