"""The lexicon of the perturbation rules, and its data files."""

import itertools
import re
from collections import Counter

import pytest

from simllm.evaluation.contrast import deciding_word_pairs
from simllm.io.reading import read_lines
from simllm.perturb.summaries import lexicon
from simllm.perturb.summaries.lexicon import HeldOutWords, load_templates
from simllm.text_cleaning import clean
from tests.perturb.summaries.lexicon_without_test_pairs import LEXICON

IRREGULAR = lexicon.load_irregular_forms()
KINDS = {"verb", "noun", "adjective", "adverb", "preposition", "other"}
PHRASES = lexicon.FOLDER / "phrases.txt"


def entries(name):
    """Yield the kind and the sides (lists of words) of each entry in a file of the lexicon."""
    for _, line in read_lines(lexicon.FOLDER / f"{name}.txt"):
        if line.strip() and not line.startswith("#"):
            kind, colon, rest = line.partition(": ")
            assert colon, line
            yield kind, [[clean(word) for word in side.split(",")] for side in rest.split("|")]


def pairs(name):
    for kind, sides in entries(name):
        yield from ((kind, pair) for pair in (
            itertools.product(*sides) if len(sides) == 2 else itertools.combinations(sides[0], 2)
        ))  # fmt: skip


@pytest.mark.parametrize(("name", "sides"), [("synonyms", 1), ("antonyms", 2), ("one_category_words", 1)])
def test_every_line_has_a_kind_and_different_words(name, sides):
    found = list(entries(name))
    assert {kind for kind, _ in found} <= KINDS
    for kind, words in found:
        flat = [word for side in words for word in side]
        assert len(words) == sides, (kind, words)
        assert all(flat), (kind, words)
        assert len(set(flat)) == len(flat) > 1, (kind, words)
    assert max(Counter((kind, str(words)) for kind, words in found).values()) == 1


@pytest.mark.parametrize("name", ["synonyms", "antonyms"])
def test_no_pair_is_listed_twice(name):
    counts = Counter((kind, frozenset(pair)) for kind, pair in pairs(name))
    assert [pair for pair, count in counts.items() if count > 1] == []


@pytest.fixture(scope="module")
def whole_lexicon():
    return lexicon.load()


def test_no_pair_is_both_synonym_and_antonym(whole_lexicon):
    """No replacement of a word is both a synonym and a word of another meaning, such as an antonym."""
    for table in (whole_lexicon.opposites, whole_lexicon.neighbours):
        for old, others in table.items():
            same = {option.word for option in whole_lexicon.synonyms.get(old, [])}
            assert not same & {option.word for option in others}, old


def test_irregular_words_list_all_forms_once():
    found = [(kind, *words[0]) for kind, words in entries("irregular")]
    assert {(kind, len(forms)) for kind, *forms in found} == {("verb", 5), ("noun", 2)}
    assert max(Counter(entry[:2] for entry in found).values()) == 1


def test_abbreviations_are_two_different_words():
    found = [
        line.partition(": ") for _, line in read_lines(lexicon.FOLDER / "abbreviations.txt") if line.strip()
    ]
    cleaned = [(clean(short), clean(long)) for short, _, long in found if not short.startswith("#")]
    assert all(short and long and short != long for short, long in cleaned)
    assert max(Counter(cleaned).values()) == 1


def test_phrases_have_the_same_slots_and_are_listed_once():
    rows = [line.split(" | ") for _, line in read_lines(PHRASES) if line.strip() and not line.startswith("#")]
    for row in rows:
        assert len(row) > 1, row
        assert len({tuple(sorted(re.findall(r"\{\d\}", phrase))) for phrase in row}) == 1, row
        assert len({(phrase.startswith("^"), phrase.endswith("$")) for phrase in row}) == 1, row
    counts = Counter(phrase for row in rows for phrase in row)
    assert [phrase for phrase, count in counts.items() if count > 1] == []


def test_held_out_words_are_in_no_list(whole_lexicon):
    held, known = HeldOutWords(deciding_word_pairs(), IRREGULAR), LEXICON
    assert {"encrypts", "encrypt", "decrypting"} <= held.words
    assert held.holds_out("encrypt", "decrypt")
    assert held.holds_out("encrypting of the {1}", "decrypting of the {1}")
    assert not held.holds_out("encrypt", "open")
    for old, options in known.synonyms.items():
        assert not any(held.holds_out(old, option.word) for option in options), old
    for table in (known.opposites, known.neighbours):
        for old, options in table.items():
            open_class = [
                option.word
                for option in options
                if option.part_of_speech in ("verb", "noun", "adjective", "adverb")
            ]
            assert not held.words & {*open_class, *([old] if open_class else [])}, old
    assert len(known.synonyms) < len(whole_lexicon.synonyms)
    assert any(option.word == "decrypts" for option in whole_lexicon.opposites["encrypts"])
    assert "encrypts" not in known.opposites


def test_capitals_do_not_hold_out_function_words():
    held = HeldOutWords([("The", "A"), ("Opens", "closes")], IRREGULAR)
    assert not held.holds_out("the file", "a file")
    assert held.holds_out("open the file", "close the file")


def test_phrases_do_not_differ_by_a_held_out_pair(tmp_path):
    file = tmp_path / "phrases.txt"
    file.write_text("^calculating {1}$ | ^computing {1}$ | ^the computing of {1}$ | ^working out {1}$\n")
    found = load_templates(file, HeldOutWords([("computes", "calculates")], IRREGULAR))
    assert [template.others for template in found] == [
        ["working out {1}"],
        ["the computing of {1}", "working out {1}"],
        ["calculating {1}", "computing {1}", "the computing of {1}"],
    ]
