"""Texts of other pairs that have the same meaning: they are no negatives."""

import numpy as np

from train.contrastive.batches import PositivePair, mark_same_meaning


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
