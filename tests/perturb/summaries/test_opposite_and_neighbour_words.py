"""Edits that replace a word of a summary by an opposite."""

from simllm.perturb.summaries.meaning_changes import opposites
from tests.perturb.summaries.lexicon_without_test_pairs import possible_changes


def test_possible_opposites():
    assert possible_changes(opposites, "opens an internal file") == {
        "opens an external file",
        "closes an internal file",
        "shuts an internal file",
    }
