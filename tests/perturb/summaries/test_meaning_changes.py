"""Changes of meaning: which texts each kind of edit makes, and which it must not make."""

import numpy as np
import pytest

from simllm.perturb.summaries.meaning_changes import change
from tests.perturb.summaries.lexicon_without_test_pairs import LEXICON, possible_changes


@pytest.mark.parametrize(
    ("text", "never"),
    [
        ("needs to open a copy", "needs from open a copy"),  # an infinitive's `to`
        ("used to check the value", "used to voucher the value"),  # a verb, not a noun
        ("set the module", "got the module"),
        ("a value between min and max", "a value between min and min"),
        ("enable all the profiles", "enable no the profiles"),
        ("the dialogs are shown", "the dialogs is shown"),
    ],
)
def test_impossible_changes_of_meaning(text, never):
    found = {change(text, LEXICON, np.random.default_rng(seed)) for seed in range(100)}
    assert len(found) > 1
    assert never not in {changed for _, changed in found - {None}}


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
    assert possible_changes("negation", text) == expected


def test_the_word_one_is_not_replaced():
    assert possible_changes("number", "returns one value") == set()
    assert "returns 3 values" in possible_changes("number", "returns 2 values")


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
    assert possible_changes("parts", text) == expected


def test_possible_opposites():
    assert possible_changes("opposite", "opens an internal file") == {
        "opens an external file",
        "closes an internal file",
        "shuts an internal file",
    }


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("roles", "copies the list to an array", {"copies an array to the list"}),
        ("roles", "waits for the user to open it", set()),
        ("roles", "compares a to b", set()),
        ("agents", "a dog is chasing a cat", {"a cat is chasing a dog"}),
        ("agents", "the parser calls the handler .", {"the handler calls the parser ."}),
        ("agents", "the item is removed by the caller", {"the caller is removed by the item"}),
        ("agents", "the list equals the array", set()),
        ("agents", "gets the list", set()),
    ],
)
def test_noun_phrases_are_swapped(kind, text, expected):
    assert possible_changes(kind, text) == expected
