"""Meaning items (texts with rewordings and texts of another meaning): reading, splits, and drawn pairs."""

import json
from collections import Counter

import numpy as np
import pytest

from simllm import InputError
from simllm.evaluation import contrast
from simllm.perturb.summaries import lexicon
from simllm.text_cleaning import clean
from tests.conftest import ROOT
from train.contrastive.batches import PositiveSource
from train.contrastive.config import MeaningSourceConfig, PositivesConfig
from train.contrastive.meaning_pairs import (
    DIFFERENT,
    SAME,
    SPLITS,
    MeaningItem,
    make_triples,
    open_source,
    read_items,
)
from train.corpus.decontaminate import ExcludedTexts
from train.corpus.sources import match_files

NOTHING = ExcludedTexts([])
ITEMS = str(ROOT / "train" / "contrastive" / "items" / "*.jsonl.gz")
UNSEEN_ITEMS = str(ROOT / "train" / "contrastive" / "unseen_items" / "*.jsonl.gz")
WORDS = lexicon.load()
NO_WORDS = WORDS.held_out_words


def item(number, **changed):
    return {
        "text": f"Opens file {number}",
        "same": [f"file {number} is opened", f"makes file {number} ready to read"],
        "different": [["opposite-verb", f"closes file {number}"], ["object", f"opens door {number}"]],
    } | changed


@pytest.fixture
def file(tmp_path):
    def write(*rows):
        path = tmp_path / "items.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return str(path)

    return write


def test_splits_share_no_item_and_hold_all(file):
    path = file(*map(item, range(400)))
    splits = [{each.same[0] for each in read_items(path, name, NOTHING, NO_WORDS)} for name in SPLITS]
    assert sum(map(len, splits)) == len(set.union(*splits)) == 400
    assert len(splits[0]) > 320
    assert min(map(len, splits[1:])) >= 10


@pytest.mark.parametrize(
    "wrong",
    [
        {"same": []},
        {"same": "file is opened"},
        {"same": [1]},
        {"different": []},
        {"different": [["closes it"]]},
        {"different": ["closes it"]},
        {"different": {"opposite-verb": "closes it"}},
        {"text": None},
        {"same": ["opens  FILE 7"]},  # equals the text once both are cleaned
        {"different": [["scope", "\u4e2d"]]},  # empty once it is cleaned
    ],
)
def test_a_line_that_is_no_item_is_an_error_with_its_place(file, wrong):
    with pytest.raises(InputError, match=r"items\.jsonl, line 2: "):
        read_items(file(item(1), item(7, **wrong)), "train", NOTHING, NO_WORDS)


def test_items_with_an_excluded_text_are_left_out(file):
    path = file(*map(item, range(9)))
    kept = read_items(path, "train", ExcludedTexts(["closes file 3"]), NO_WORDS)
    every = read_items(path, "train", NOTHING, NO_WORDS)
    assert {each.same[0] for each in every} - {each.same[0] for each in kept} == {"opens file 3"}


def test_texts_that_differ_by_a_held_out_word_pair_are_left_out(file):
    path = file(*map(item, range(9)))
    held_out = lexicon.load({("open", "close")}).held_out_words
    for each in read_items(path, "train", NOTHING, held_out):
        assert each.kinds == ("object",)


def test_drawn_pairs_have_the_right_labels(file):
    rows = [item(n) for n in range(30)]
    source = open_source(MeaningSourceConfig(source=file(*rows), items=True, share=1.0), NOTHING, WORDS)
    same = {frozenset((clean(row["text"]), *row["same"])) for row in rows}
    random, counts = np.random.default_rng(1), Counter()
    for _ in range(500):
        pair = source.draw(random)
        assert pair.first != pair.second
        assert any({pair.first, pair.second} <= texts for texts in same) == (pair.label == SAME)
        counts[pair.label] += 1
    assert min(counts[SAME], counts[DIFFERENT]) > 200


def test_positive_pairs_have_changes_as_hard_negatives(file):
    config = PositivesConfig(source=file(*map(item, range(30))), items=True, share=1.0, hard_negatives=1)
    source, random = PositiveSource(config, NOTHING, WORDS), np.random.default_rng(1)
    for _ in range(100):
        pair = source.draw(random)
        assert len(pair.negatives) == 1
        assert ("closes" in pair.negatives[0]) or ("door" in pair.negatives[0])
        assert not {"closes", "door"} & {*pair.first.split(), *pair.second.split()}


@pytest.mark.parametrize(
    ("config", "options"),
    [
        (PositivesConfig, {"rewording": True}),
        (PositivesConfig, {"min_overlap": 0.5}),
        (MeaningSourceConfig, {"fields": ("a",)}),
    ],
)
def test_options_that_do_not_apply_to_items_are_refused(config, options):
    with pytest.raises(InputError, match="items"):
        config(source="x", share=1.0, items=True, **options)


def test_a_single_item_has_no_unrelated_triple():
    item = MeaningItem(("opens it", "it is opened"), ("closes it",), ("opposite-verb",))
    assert make_triples([item]).kinds == ["opposite-verb"]
    assert make_triples([item, item]).kinds == ["opposite-verb"] * 2
    other = MeaningItem(("adds a", "a is added"), ("drops a",), ("opposite-verb",))
    assert make_triples([item, other]).kinds == ["opposite-verb", "unrelated"] * 2


def test_the_shipped_files_are_compressed_reproducibly():
    """Equal items give equal files: the gzip header has no time (bytes 4 to 7) and no file name (a flag)."""
    files = [*match_files(ITEMS), *match_files(UNSEEN_ITEMS)]
    assert len(files) == 33
    for file in files:
        header = file.read_bytes()[:8]
        assert (header[3], header[4:]) == (0, bytes(4)), file


@pytest.mark.slow
@pytest.mark.parametrize("split", SPLITS)
def test_the_shipped_items_are_sound_and_share_no_text_with_the_contrast_set(split):
    triples = contrast.clean_triples(contrast.load())
    tested = {*triples.references, *triples.rewordings, *triples.changes}
    items = read_items(ITEMS, split, NOTHING, NO_WORDS)
    for each in items:
        assert not tested & {*each.same, *each.different}
    made = make_triples(items)
    assert len(made.references) == sum(len(each.different) + 1 for each in items)
    assert made.kinds.count("unrelated") == len(items)
    assert {"negation", "roles", "quantifier", "condition", "exception", "scope"} <= set(made.kinds)


@pytest.mark.slow
def test_unseen_items_share_no_text_with_other_items_or_the_contrast_set():
    triples = contrast.clean_triples(contrast.load())
    known = {*triples.references, *triples.rewordings, *triples.changes}
    for item in read_items(ITEMS, None, NOTHING, NO_WORDS):
        known |= {*item.same, *item.different}
    unseen = read_items(UNSEEN_ITEMS, None, NOTHING, NO_WORDS)
    assert len(unseen) > 400
    for item in unseen:
        assert not known & {*item.same, *item.different}
