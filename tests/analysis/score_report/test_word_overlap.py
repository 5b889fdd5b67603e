"""The word overlap in a report: the share of words that two texts have in common."""

import numpy as np
import pytest

from simllm.analysis.score_report import ScoredPairs
from simllm.analysis.score_report.pairs import word_overlap


@pytest.mark.parametrize(
    ("candidate", "reference", "expected"),
    [
        ("Opens the file.", "opens the FILE", 1),
        ("adds .", "removes .", 0),
        ("l'\u00e9l\u00e8ve \u2014 lit", "\u00c9crit \u2014 tout", 0),
        ("\u00c9crit tout", "\u00e9crit rien", 1 / 3),
        ("\u0915\u0940 a", "\u0915\u093f a", 1 / 3),  # the words differ in a vowel sign
        ("a\ufeffb", "a\u3000b", 1),
        ("", "", 1),
        ("...", "a", 0),
    ],
)
def test_capitals_and_punctuation_do_not_count(candidate, reference, expected):
    assert word_overlap([candidate], [reference]) == [pytest.approx(expected)]


def test_surprising_pairs_share_words_but_score_low():
    run = ScoredPairs(
        ["opens the file", "adds two lists", "writes a log"],
        {"": ["closes the file", "combines 2 arrays", "logs"]},
        {"score": np.array([0.1, 0.9, 0.5])},
    )
    assert np.argmax(run.surprise) == 0
    assert np.argmin(run.surprise) == 1
