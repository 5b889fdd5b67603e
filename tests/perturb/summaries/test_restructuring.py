"""Sentences that the rules for grammar must not change, such as those without a passive voice."""

import numpy as np
import pytest

from simllm.perturb.summaries import restructuring
from tests.perturb.summaries.lexicon_without_test_pairs import LEXICON


@pytest.mark.parametrize(
    "text",
    [
        "a dog is chasing a cat",  # "chasing is been by a dog a cat"
        "the file is closed by the caller",
        "the user gives the dog a bone",
        "the class implements the interface of the list",
        "the reader checks that the file is open",
        "the parser calls the handler and the filter",
        "the a",
        "the",
    ],
)
def test_sentences_that_do_not_become_passive(text):
    assert restructuring.passive_by(text.split(), LEXICON) is None


def genitive(words):
    return restructuring.genitive(words, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (restructuring.adverb_moved, "loads the assembly"),
        (restructuring.adverb_moved, "returns the font family"),
        (genitive, "checks that it's empty"),
        (genitive, "makes sure that there's room"),
    ],
)
def test_rules_that_do_not_fit(rule, text):
    assert rule(text.split()) is None
