"""Positive pairs, and the texts that are known to have the same meaning."""

import json

import numpy as np

from simllm.perturb.summaries import lexicon
from train.contrastive.batches import PositivePair, PositiveSource, mark_same_meaning
from train.contrastive.config import PositivesConfig
from train.corpus.decontaminate import ExcludedTexts


def test_pairs_with_an_excluded_text_are_left_out_also_for_a_hard_negative(tmp_path):
    file = tmp_path / "pairs.jsonl"
    rows = [{"a": f"opens {i}", "b": f"{i} is opened", "c": f"closes {i}"} for i in range(5)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = PositivesConfig(source=str(file), share=1.0, fields=["a", "b", "c"])
    excluded = ExcludedTexts(["opens 0", "1 is opened", "closes 2"])
    source = PositiveSource(config, excluded, lexicon.load())
    assert [pair.first for pair in source.pairs] == ["opens 3", "opens 4"]
    assert source.pairs[0].negatives == ("closes 3",)


def test_excluded_texts_are_found_in_lines_that_are_not_clean(tmp_path):
    file = tmp_path / "lines.txt"
    file.write_text("Opens the Big Red File now.\nCloses the Door of this room.\n")
    config = PositivesConfig(source=str(file), share=1.0, fields=[])
    source = PositiveSource(config, ExcludedTexts(["opens the big red file now"]), lexicon.load())
    random = np.random.default_rng(0)
    assert {source.draw(random).first for _ in range(20)} == {"closes the door of this room ."}


def test_same_meaning_and_false_hard_negatives():
    """Pairs of one group, and pairs with a common text, have the same meaning.

    A hard negative is false for a pair if it equals one of the pair's texts.
    """
    texts = [("a", "b", b"1"), ("c", "d", b"1"), ("a", "e", b"2"), ("f", "c", b"3"), ("g", "b", b"4")]
    same, known = mark_same_meaning([PositivePair(*pair) for pair in texts])
    expected = np.eye(5, dtype=bool)
    for i, j in [(0, 1), (0, 2), (0, 4), (1, 3)]:
        expected[i, j] = expected[j, i] = True
    assert (same == expected).all()
    assert known.shape == (5, 0)
    _, known = mark_same_meaning(
        [
            PositivePair("a", "b", b"1", ("x", "d")),
            PositivePair("c", "d", b"2", ("b",)),
            PositivePair("d", "e", b"3"),
        ]
    )
    assert known.tolist() == [[False, False, True], [False, True, False], [False, True, False]]
