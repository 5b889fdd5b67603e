"""Random rewordings of single summaries."""

import numpy as np
import pytest

from simllm.perturb.summaries.rewording import reword
from tests.perturb.summaries.lexicon_without_test_pairs import LEXICON


def rewordings(text):
    return {reword(text, LEXICON, np.random.default_rng(seed)) for seed in range(300)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("deletes the given file .", "removes the given file ."),
        ("deletes the given file .", "deletes specified file"),
        ("returns true if the list is empty .", "checks whether the list is empty ."),
        ("gets the three args", "gets the 3 arguments"),
        ("makes a db", "makes a database"),
        ("the caller copies the list", "the list is copied by the caller"),
        ("the listener closes the files .", "the files are closed by the listener ."),
    ],
)
def test_possible_rewordings(text, expected):
    assert expected in rewordings(text)
