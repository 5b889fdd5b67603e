"""Negations that are added to summaries or removed."""

import pytest

from simllm.perturb.summaries.meaning_changes import negations
from tests.perturb.summaries.lexicon_without_test_pairs import possible_changes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("returns the name if it is set", {
            "does not return the name if it is set", "returns the name unless it is set",
            "returns the name if it is not set",
        }),
        ("checks if the file can't be read", {
            "checks if the file can be read", "does not check if the file can't be read",
        }),
        ("alias for the name", set()),
        ("delete the name", {"do not delete the name"}),
        ("doesn't copy no file", {"does copy no file", "doesn't copy some file"}),
    ],
)  # fmt: skip
def test_negations_are_added_and_removed(text, expected):
    assert possible_changes(negations, text) == expected
