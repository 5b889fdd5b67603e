"""Inflected forms of regular and irregular words and of phrases, and the indefinite article before a word."""

import pytest

from simllm.perturb.summaries import lexicon
from simllm.perturb.summaries.inflection import indefinite_article, inflect, word_family

IRREGULAR = lexicon.load_irregular_forms()


@pytest.mark.parametrize(
    ("kind", "forms"),
    [
        ("verb", "try tries tried tried trying"),
        ("verb", "stop stops stopped stopped stopping"),
        ("verb", "play plays played played playing"),
        ("verb", "compute computes computed computed computing"),
        ("verb", "see sees saw seen seeing"),
        ("verb", "tie ties tied tied tying"),
        ("verb", "pass passes passed passed passing"),
        ("verb", "fetch fetches fetched fetched fetching"),
        ("verb", "write writes wrote written writing"),
        ("verb", "set sets set set setting"),
        ("noun", "index indices"),
        ("noun", "entry entries"),
        ("noun", "key keys"),
        ("noun", "vertex vertices"),
        ("noun", "child children"),
        ("noun", "box boxes"),
        ("adjective", "empty"),
    ],
)
def test_inflected_forms(kind, forms):
    assert inflect(kind, forms.split()[0], IRREGULAR) == tuple(forms.split())


def test_one_word_of_a_phrase_is_inflected():
    up = tuple(f"{form} up" for form in "look looks looked looked looking".split())
    assert inflect("verb", "look up", IRREGULAR) == up
    assert inflect("noun", "list index", IRREGULAR) == ("list index", "list indices")


def test_word_family():
    assert word_family("stopped", IRREGULAR) >= {"stop", "stops", "stopped", "stopping"}
    assert word_family("copies", IRREGULAR) >= {"copy", "copied", "copying"}
    assert word_family("written", IRREGULAR) >= {"write", "wrote", "writing"}
    assert word_family("the", IRREGULAR) >= {"the"}
    assert "type" not in word_family("typo", IRREGULAR)


@pytest.mark.parametrize(
    ("expected", "words"),
    [
        ("a", "list user unique url uuid utf one once use usr european b unit universal"),
        ("an", "array empty index hour honest html xml api id unindexed unimportant n x sql"),
    ],
)
def test_indefinite_article(expected, words):
    assert [word for word in words.split() if indefinite_article(word) != expected] == []
