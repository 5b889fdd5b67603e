"""Recognition of fetched texts that occur in the evaluation data."""

import pytest

from train.data.filters import EvaluationTexts, key


@pytest.mark.parametrize(
    ("text", "evaluation", "inside"),
    [
        ("Returns the name !", "returns THE name.", True),
        ("returns it", "returns it", False),  # fewer than three words
        ("returns the name of the open file here", "returns the name of the open", True),
        ("returns the name of the open", "returns the name of the open file here", True),
        ("returns the name of the opening act", "returns the name of the open", False),  # not word for word
        ("returns the name of the", "returns the name of the open file", False),  # fewer than six words
        ("it returns the name of the open file", "returns the name of the open file", False),
        ("", "returns the name", False),
    ],
)
def test_equal_texts_and_prefixes_count_as_evaluation_texts(text, evaluation, inside):
    assert (text in EvaluationTexts([evaluation, "something else entirely"])) is inside


def test_a_key_keeps_letters_and_digits_of_english():
    assert key("  Gets-the ÄB2_c  ") == "gets the b2 c"
