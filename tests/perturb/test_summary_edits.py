"""Rewordings and meaning changes of real and of random comments."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simllm.evaluation import contrast
from simllm.perturb.summaries import grammatical_rewording, lexicon
from simllm.perturb.summaries.meaning_changing_edits import KINDS, change
from simllm.perturb.summaries.random_rewording import reword
from simllm.text_cleaning import clean

LEXICON = lexicon.load(contrast.deciding_word_pairs())
_KNOWN = sorted({*LEXICON.synonyms, *LEXICON.opposites, *LEXICON.neighbours, *LEXICON.verb_forms})
_PHRASES = sorted({" ".join(sorted(template.words)) for template in LEXICON.templates})
_ODDS = "the a an no if not isn't can't 3 5 five . , ' \" * / # - ( ) non one".split()
TEXTS = st.one_of(
    st.text(),
    st.lists(st.sampled_from(_KNOWN) | st.sampled_from(_PHRASES) | st.sampled_from(_ODDS)).map(" ".join),
).map(clean)


@settings(max_examples=100)
@given(TEXTS, st.integers(0, 2**32))
def test_edits_of_any_text_are_clean(text, seed):
    reworded = reword(text, LEXICON, np.random.default_rng(seed))
    assert clean(reworded) == reworded
    assert bool(reworded) == bool(text)
    assert reworded == reword(text, LEXICON, np.random.default_rng(seed))
    changed = change(text, LEXICON, np.random.default_rng(seed))
    assert changed == change(text, LEXICON, np.random.default_rng(seed))
    if changed is not None:
        kind, other = changed
        assert kind in KINDS
        assert other
        assert other != text
        assert clean(other) == other


def test_nearly_every_comment_can_be_reworded_and_changed(comments):
    random = np.random.default_rng(0)
    texts = [text for text in map(clean, comments) if 3 < text.count(" ") < 20]
    assert np.mean([reword(text, LEXICON, random) != text for text in texts]) > 0.8
    changes = [change(text, LEXICON, random) for text in texts]
    assert np.mean([found is not None for found in changes]) > 0.95
    kinds = [found[0] for found in changes if found]
    assert all(kinds.count(kind) > 20 for kind in KINDS)


def rewordings(text):
    return {reword(text, LEXICON, np.random.default_rng(seed)) for seed in range(300)}


def changes(kind, text):
    found = (
        option for seed in range(50) for option in KINDS[kind](text, LEXICON, np.random.default_rng(seed))
    )
    return {clean(option) for option in found}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("deletes the given file .", "removes the given file ."),
        ("deletes the given file .", "deletes specified file"),
        ("returns true if the list is empty .", "checks whether the list is empty ."),
        ("gets the three args", "gets the 3 arguments"),
        ("makes a db", "makes a database"),
        ("the caller copies the list", "the list is copied by the caller"),
        ("the listener closes the files .", "the files are closed by the listener ."),
    ],
)
def test_possible_rewordings(text, expected):
    assert expected in rewordings(text)


@pytest.mark.parametrize(
    "text",
    [
        "a dog is chasing a cat",  # "chasing is been by a dog a cat"
        "the file is closed by the caller",
        "the user gives the dog a bone",
        "the class implements the interface of the list",
        "the reader checks that the file is open",
        "the parser calls the handler and the filter",
        "the a",
        "the",
    ],
)
def test_sentences_that_do_not_become_passive(text):
    assert grammatical_rewording.passive_by(text.split(), LEXICON, np.random.default_rng(0)) is None


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (grammatical_rewording.adverb_moved, "loads the assembly"),
        (grammatical_rewording.adverb_moved, "returns the font family"),
        (grammatical_rewording.genitive, "checks that it's empty"),
        (grammatical_rewording.genitive, "makes sure that there's room"),
    ],
)
def test_rules_that_do_not_fit(rule, text):
    assert rule(text.split(), LEXICON, np.random.default_rng(0)) is None


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("opposite", "opens an internal file", {
            "opens an external file", "closes an internal file", "shuts an internal file",
        }),
        ("number", "returns one value", set()),
        ("negation", "returns the name if it is set", {
            "does not return the name if it is set", "returns the name unless it is set",
            "returns the name if it is not set",
        }),
        ("negation", "checks if the file can't be read", {
            "checks if the file can be read", "does not check if the file can't be read",
        }),
        ("negation", "alias for the name", set()),
        ("negation", "delete the name", {"do not delete the name"}),
        ("negation", "doesn't copy no file", {"does copy no file", "doesn't copy some file"}),
        ("roles", "copies the list to an array", {"copies an array to the list"}),
        ("roles", "waits for the user to open it", set()),
        ("roles", "compares a to b", set()),
        ("agents", "a dog is chasing a cat", {"a cat is chasing a dog"}),
        ("agents", "the parser calls the handler .", {"the handler calls the parser ."}),
        ("agents", "the item is removed by the caller", {"the caller is removed by the item"}),
        ("agents", "the list equals the array", set()),
        ("agents", "gets the list", set()),
        ("parts", "gets the name and the value", {"gets the name", "gets the value"}),
        ("parts", "only the owner reads the file", {"the owner reads the file"}),
        ("parts", "closes the file , if it is open .", {"closes the file ."}),
        ("parts", "if it is open , closes the file", set()),
    ],
)  # fmt: skip
def test_possible_changes_of_meaning(kind, text, expected):
    assert changes(kind, text) == expected


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
