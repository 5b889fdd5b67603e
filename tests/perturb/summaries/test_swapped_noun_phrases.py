"""Noun phrases that are swapped around a preposition or a verb."""

import pytest

from simllm.perturb.summaries.meaning_changes import agents, roles
from tests.perturb.summaries.lexicon_without_test_pairs import possible_changes


@pytest.mark.parametrize(
    ("edit", "text", "expected"),
    [
        (roles, "copies the list to an array", {"copies an array to the list"}),
        (roles, "waits for the user to open it", set()),
        (roles, "compares a to b", set()),
        (agents, "a dog is chasing a cat", {"a cat is chasing a dog"}),
        (agents, "the parser calls the handler .", {"the handler calls the parser ."}),
        (agents, "the item is removed by the caller", {"the caller is removed by the item"}),
        (agents, "the list equals the array", set()),
        (agents, "gets the list", set()),
    ],
)
def test_noun_phrases_are_swapped(edit, text, expected):
    assert possible_changes(edit, text) == expected
