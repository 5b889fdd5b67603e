"""The indefinite article, "a" or "an", before words, abbreviations and letters."""

import pytest

from simllm.perturb.summaries.inflection import indefinite_article


@pytest.mark.parametrize(
    ("expected", "words"),
    [
        ("a", "list user unique url uuid utf one once use usr european b unit universal"),
        ("an", "array empty index hour honest html xml api id unindexed unimportant n x sql"),
    ],
)
def test_indefinite_article(expected, words):
    assert [word for word in words.split() if indefinite_article(word) != expected] == []
