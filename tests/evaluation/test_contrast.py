"""The contrast set: its triples, and the word pairs that decide them."""

import json
from collections import Counter

import numpy as np
import pytest

from simllm.errors import InputError
from simllm.evaluation import contrast
from simllm.evaluation.contrast import deciding_word_pairs
from simllm.metrics.text.words import jaccard
from simllm.text_cleaning import clean

GOOD = {"reference": "a b", "rewording": "a c", "change": "a d", "kind": "verb", "form": "balanced"}


def overlap(candidates, references):
    """Return the Jaccard overlap of the cleaned words."""
    return jaccard([clean(text) for text in candidates], [clean(text) for text in references])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "triples.jsonl: no triples"),
        ([GOOD, {**GOOD, "change": None}], 'line 2: expected a text under "change"'),
        ([{key: GOOD[key] for key in GOOD if key != "form"}], 'line 1: expected a text under "form"'),
        (["a"], "line 1: expected a JSON object"),
    ],
)
def test_error_about_a_bad_triple_names_the_line(tmp_path, rows, message):
    file = tmp_path / "triples.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(InputError, match=message):
        contrast.load(file)


def test_wins_losses_and_ties(tmp_path):
    """In the three triples, the rewording shares more, as many and fewer reference words than the change."""
    file = tmp_path / "triples.jsonl"
    rows = [{**GOOD, "rewording": "a b c"}, GOOD, {**GOOD, "change": "b a", "form": "adversarial"}]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    triples = contrast.load(file)
    wins = contrast.rewording_wins(overlap, triples)
    assert wins.tolist() == [1, 0.5, 0]
    assert contrast.mean_by_label(triples.forms, wins) == {"balanced": 0.75, "adversarial": 0}


def test_means_of_many_long_labels_are_fast():
    """A search through all values for each label takes minutes; an array of the labels takes gigabytes."""
    labels = [f"{'x' * 2000}{i}" for i in range(30_000)]
    assert contrast.mean_by_label(labels, np.ones(30_000)) == dict.fromkeys(labels, 1)


def test_the_shipped_triples():
    triples = contrast.load()
    columns = (triples.references, triples.rewordings, triples.changes)
    assert len(triples.references) == 550
    for texts in zip(*columns, strict=True):
        assert len(set(texts)) == 3
        assert all(text == text.strip() and text.isascii() and text[-1] in ".?" for text in texts)
    assert Counter(triples.forms) == {"balanced": 275, "adversarial": 275}
    assert min(Counter(triples.kinds).values()) >= 20
    counts = Counter(zip(triples.references, triples.forms, strict=True))
    assert set(counts.values()) == {1}
    assert len({reference for reference, _ in counts}) == 275


def test_word_overlap_does_not_separate_the_shipped_triples():
    """In balanced triples, the rewording and the change share equally many words with the reference.

    There are few exceptions, in which a punctuation mark or a part of a compound counts as a word.
    """
    triples = contrast.load()
    wins, forms = contrast.rewording_wins(overlap, triples), np.array(triples.forms)
    assert not wins[forms == "adversarial"].any()
    assert (wins[forms == "balanced"] == 0.5).mean() > 0.94
    assert wins[forms == "balanced"].mean() == pytest.approx(0.5, abs=0.02)


TRIPLE = {"kind": "verb", "form": "balanced"}


def test_deciding_word_pairs_are_words_that_replace_each_other(tmp_path):
    file = tmp_path / "triples.jsonl"
    rows = [
        {
            **TRIPLE,
            "reference": "Opens the file.",
            "rewording": "Unlocks the file.",
            "change": "Closes the file.",
        },
        {
            **TRIPLE,
            "reference": "Send it.",
            "rewording": "Pass on.",
            "change": "Lose it.",
            "form": "adversarial",
        },
        {
            **TRIPLE,
            "reference": "Copies a to b.",
            "rewording": "Copies b from a.",
            "change": "Copies b to a.",
        },
        {
            **TRIPLE,
            "reference": "Is case-blind.",
            "rewording": "Is it case-blind?",
            "change": "Is case-aware.",
        },
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    expected = {("opens", "unlocks"), ("opens", "closes"), ("send", "lose"), ("case-blind", "case-aware")}
    assert deciding_word_pairs(file) - {("to", "from")} == expected
