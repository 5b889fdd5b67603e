from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from simllm.text_cleaning import clean
from train.corpus.deduplicate import (
    NEAR,
    SHORT,
    SIGNATURE,
    NearDuplicates,
    find_originals,
    identity,
    signature,
    similarity,
    words,
)

TEXTS = st.lists(
    st.lists(st.sampled_from(["the", "list", "of", "a", "name", "key"]), max_size=30).map(" ".join),
    max_size=40,
)


def found(texts):
    identities = np.array([int.from_bytes(identity(text), "big") for text in texts], np.uint64)
    signatures = np.array([signature(text) for text in texts], np.uint8).reshape(-1, SIGNATURE)
    return find_originals(identities, signatures)


def pairs(text):
    split = words(text)
    return set(pairwise(split)) if len(split) >= SHORT else {tuple(split)}


def overlap(a, b):
    return len(pairs(a) & pairs(b)) / max(1, len(pairs(a) | pairs(b)))


@given(TEXTS)
def test_every_original_is_near_and_earlier(texts):
    original = found(texts)
    assert (original <= np.arange(len(texts))).all()
    assert (original[original] == original).all()
    seen = {}
    for index, text in enumerate(texts):
        first = seen.setdefault(identity(text), index)
        assert original[index] <= first
        if first == index and original[index] == index:
            assert all(words(texts[other]) != words(text) for other in range(index))


def test_short_texts_with_one_other_word_are_kept():
    texts = ["sets the name of the user", "gets the name of the user", "Sets the name, of the user."]
    assert found([clean(text) for text in texts]).tolist() == [0, 1, 0]


def test_long_texts_with_one_other_word_are_near_duplicates():
    long = " ".join(f"word{n}" for n in range(60))
    texts = [long, long + " more", long.replace("word30", "other"), " ".join(reversed(long.split()))]
    assert found(texts).tolist() == [0, 0, 0, 3]


def test_finds_texts_near_a_given_set():
    random = np.random.default_rng(0)
    some = random.integers(0, 4, (300, SIGNATURE), np.uint8)  # few values: many agree in a band
    others = some[random.integers(0, 300, 600)].copy()
    for row in others:
        row[random.choice(SIGNATURE, random.integers(0, 12), replace=False)] += 4
    expected = [bool((similarity(some, row[None]) >= NEAR).any()) for row in others]
    assert 100 < sum(expected) < 500
    assert NearDuplicates(some)(others).tolist() == expected
    assert not NearDuplicates(some[:0])(others).any()
    assert not len(NearDuplicates(some)(others[:0]))


def test_text_with_too_many_candidates_counts_as_near():
    some = np.random.default_rng(0).integers(0, 256, (200, SIGNATURE), np.uint8)
    some[:, :5] = 1
    assert NearDuplicates(some)(np.ones((1, SIGNATURE), np.uint8)).tolist() == [True]
    assert NearDuplicates(some[:90])(np.ones((1, SIGNATURE), np.uint8)).tolist() == [False]


def test_the_estimate_is_close_to_the_overlap(comments):
    random = np.random.default_rng(0)
    texts = [clean(text) for text in comments if len(text.split()) > 30][:400]
    cut = [" ".join(text.split()[: random.integers(25, 99)]) for text in texts]
    estimates = similarity(*(np.array([signature(text) for text in some]) for some in (texts, cut)))
    errors = estimates - np.array([overlap(a, b) for a, b in zip(texts, cut, strict=True)])
    assert abs(errors.mean()) < 0.02
    assert np.sqrt((errors**2).mean()) < 0.07


def test_real_near_duplicates_are_found(comments):
    texts = sorted({clean(text) for text in comments})
    original = found(texts)
    missed = 0
    for index in np.flatnonzero(original != np.arange(len(texts))):
        assert overlap(texts[index], texts[original[index]]) > 0.75
    for a in range(0, len(texts), 20):
        near = [b for b in range(a) if overlap(texts[a], texts[b]) > 0.97]
        missed += bool(near) and original[a] == a
    assert missed == 0
