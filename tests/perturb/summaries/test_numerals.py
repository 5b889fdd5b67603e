"""Numbers that are replaced by other numbers."""

from simllm.perturb.summaries.meaning_changes import numbers
from tests.perturb.summaries.lexicon_without_test_pairs import possible_changes


def test_the_word_one_is_not_replaced():
    assert possible_changes(numbers, "returns one value") == set()
    assert "returns 3 values" in possible_changes(numbers, "returns 2 values")
