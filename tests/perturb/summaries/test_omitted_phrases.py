"""Edits that leave out a phrase of a summary."""

import pytest

from simllm.perturb.summaries.meaning_changes import parts
from tests.perturb.summaries.lexicon_without_test_pairs import possible_changes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gets the name and the value", {"gets the name", "gets the value"}),
        ("only the owner reads the file", {"the owner reads the file"}),
        ("closes the file , if it is open .", {"closes the file ."}),
        ("if it is open , closes the file", set()),
    ],
)
def test_possible_omissions(text, expected):
    assert possible_changes(parts, text) == expected
