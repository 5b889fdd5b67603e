"""Changing words: they are in one text alone if possible, and never punctuation."""

from simllm.analysis.explanation import Explanation, Word


def word_of(text, same_without):
    return Word(text, 0.1, "match", 0.5, same_without)


def test_changing_words_are_in_one_text_only_if_there_are_such_words():
    shared = [word_of("sets", 0.9), word_of("script", 0.2)]
    own = Explanation(0.9, shared, [*shared, word_of("existing", 0.8)], (0, 0), "", 0.1, True)
    assert own.changing_words == ["existing"]
    swapped = Explanation(0.9, shared, shared[::-1], (0, 0), "", 0.1, True)
    assert swapped.changing_words == ["sets"]


def test_punctuation_is_no_changing_word():
    side = [word_of("empty", 0.4), word_of(".", 0.9), word_of("<", 0.45)]
    assert Explanation(0.9, side, [word_of("x", 0.1)], (0, 0), "", 0.1, True).changing_words == ["<", "empty"]
    assert Explanation(0.9, side[1:2], side[1:2], (0, 0), "", 0.1, True).changing_words == []
