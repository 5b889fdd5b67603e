"""Tests of a summarizer with pytest: a summary may be worded differently, but must mean the same."""

from simllm import assert_same_meaning

SUMMARIES = {  # here stands your summarizer
    "user_name": "Gets the name of the user.",
    "push": "Removes the first element of the list.",
    "load": "Parses the configuration file. Raises an error if a key is missing. Logs the result.",
}


def test_user_name() -> None:
    """Other words for the same."""
    assert_same_meaning(SUMMARIES["user_name"], "Returns the user's name.")


def test_push() -> None:
    """Nearly the same words for something else."""
    assert_same_meaning(SUMMARIES["push"], "Adds an element to the list.")


def test_load() -> None:
    """Several sentences, some of which are wrong."""
    expected = "Parses the configuration file. Returns None if a key is missing."
    assert_same_meaning(SUMMARIES["load"], expected)
