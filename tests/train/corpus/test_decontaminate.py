import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simllm.errors import InputError
from train.corpus import decontaminate
from train.corpus.decontaminate import ExcludedTexts
from train.corpus.deduplicate import words

WORDS = st.lists(st.sampled_from("ab"), max_size=9).map(" ".join)


@pytest.mark.parametrize(
    ("text", "there"),
    [
        ("returns the sum of both numbers", True),
        ("Returns the sum , of both - numbers !".lower(), True),
        ("always returns the sum of both numbers , as it is", True),
        ("the sum of both", True),
        ("sum of both", False),  # three words, a part
        ("returns the sums of both numbers", False),
        ("creates a new", True),
        ("creates a new list", False),
        ("a new", False),
        ("adds", True),
        ("adds two", False),
        ("", False),
    ],
)
def test_finds_equal_containing_and_contained_texts(text, there):
    assert (
        text in ExcludedTexts(["returns the sum of both numbers .", "creates a new", "adds", ""])
    ) == there


@given(st.lists(WORDS, max_size=5), WORDS)
def test_matches_equal_a_word_by_word_search(texts, text):
    def within(a, b):
        return len(a) >= 4 and any(a == b[at : at + len(a)] for at in range(len(b)))

    others = [words(other) for other in texts if words(other)]
    mine = words(text)
    expected = any(mine == other or within(mine, other) or within(other, mine) for other in others)
    assert (text in ExcludedTexts(texts)) == expected


def test_references_and_candidates_are_read(tmp_path):
    row = {"reference": "Gets THE name", "candidate": "x1", "candidate_clean": "Sets it.", "rating": 1}
    (tmp_path / "rated.jsonl").write_text(json.dumps(row))
    found = decontaminate.read_excluded([str(tmp_path / "rated.jsonl")])
    assert all(text in found for text in ("gets the name", "x1", "sets it ."))


def test_pairs_of_sentences_are_read(tmp_path):
    (tmp_path / "rated.jsonl").write_text('{"a": "A man plays.", "b": "Somebody plays.", "score": 3}')
    found = decontaminate.read_excluded([str(tmp_path / "rated.jsonl")])
    assert "a man plays ." in found
    assert "somebody plays ." in found


def test_rated_file_without_the_expected_texts_is_an_error(tmp_path):
    (tmp_path / "rated.jsonl").write_text('{"ref": "a b", "hyp": "a c"}')
    with pytest.raises(InputError, match=r'rated\.jsonl, line 1: expected texts under "reference" and'):
        decontaminate.read_excluded([str(tmp_path / "rated.jsonl")])
