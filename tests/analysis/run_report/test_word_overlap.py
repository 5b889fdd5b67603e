"""The word overlap in a report: the share of words that two texts have in common."""

import pytest

from simllm.analysis.run_report.word_overlap import word_overlap


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
