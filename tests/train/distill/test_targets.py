"""Targets of a distillation: principal axes, and a rotation that preserves cosines."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import normalize

from simllm import InputError
from train.distill.targets import Targets, compute_principal_axes, ngram_cosines
from train.distill.teachers import SHARD


def embeddings(seed, count, width):
    rows = np.random.default_rng(seed).normal(size=(count, width)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return [rows[i : i + SHARD] for i in range(0, count, SHARD)]


def single_texts(count):
    return [(f"text {i}",) for i in range(count)]


@settings(max_examples=25)
@given(st.integers(1, 40), st.integers(1, 12), st.data())
def test_principal_axes_are_orthonormal_and_keep_most_variance(count, width, data):
    kept = data.draw(st.integers(1, width))
    vectors = embeddings(data.draw(st.integers(0, 99)), count, width)[0]
    axes = compute_principal_axes(vectors, kept)
    assert axes.shape == (width, kept)
    assert axes.T @ axes == pytest.approx(np.eye(kept), abs=1e-5)
    singular = np.linalg.svd(vectors, compute_uv=False)[:kept]  # no axes keep more than these
    assert np.square(vectors @ axes).sum() == pytest.approx(np.square(singular).sum(), rel=1e-4)


def test_full_set_of_axes_preserves_cosines():
    vectors = embeddings(0, 30, 8)[0]
    turned = vectors @ compute_principal_axes(vectors, 8)
    assert turned @ turned.T == pytest.approx(vectors @ vectors.T, abs=1e-5)


@settings(max_examples=25)
@given(st.integers(0, 99), st.integers(1, 30), st.integers(1, 10))
def test_rotation_preserves_cosines_of_the_targets(seed, known, width):
    """The cosines are also preserved if there are fewer known texts than dimensions."""
    targets = Targets(single_texts(30), [embeddings(seed, 30, 6), embeddings(seed + 1, 30, 4)], width, seed)
    everything = np.arange(30)
    before = targets.reduce(targets.teacher_embeddings(everything))
    student = torch.randn(known, width, generator=torch.Generator().manual_seed(seed))
    targets.rotate_towards(student, everything[:known])
    after = targets.reduce(targets.teacher_embeddings(everything))
    assert torch.allclose(after.norm(dim=1), torch.ones(30), atol=1e-5)
    assert torch.allclose(after @ after.T, before @ before.T, atol=1e-4)
    unit = normalize(student, dim=1)
    nearer = (after[:known] * unit).sum() - (before[:known] * unit).sum()
    assert nearer > -1e-3


def test_a_known_rotation_is_found():
    targets = Targets(single_texts(50), [embeddings(0, 50, 6)], 6, 0)
    rotation = torch.linalg.qr(torch.randn(6, 6, generator=torch.Generator().manual_seed(0)))[0]
    everything = np.arange(50)
    student = targets.reduce(targets.teacher_embeddings(everything)) @ rotation
    targets.rotate_towards(3 * student, everything)
    assert torch.allclose(targets.reduce(targets.teacher_embeddings(everything)), student, atol=1e-4)


def test_teachers_have_equal_weight():
    shards = [embeddings(0, 20, 6), embeddings(1, 20, 4)]
    whole = Targets(single_texts(20), shards, 5, 0).teacher_embeddings(np.arange(20))
    mean = sum(torch.from_numpy(part[0] @ part[0].T) for part in shards) / 2
    assert torch.allclose(whole @ whole.T, mean, atol=1e-5)


def test_teachers_that_are_too_narrow_are_refused():
    with pytest.raises(InputError, match="embeddings have width 10, the encoder's have width 11"):
        Targets(single_texts(20), [embeddings(0, 20, 6), embeddings(1, 20, 4)], 11, 0)


def test_neighbours_are_those_of_all_teachers():
    a, b = (embeddings(seed, 200, 8)[0] for seed in (0, 1))
    targets = Targets(single_texts(200), [[a], [b]], 8, seed=0)
    texts = np.array([3, 199])
    found = targets.find_neighbours(texts, 5)
    cosines = (a[texts] @ a.T + b[texts] @ b.T) / 2
    for text, near, row in zip(texts, found, cosines, strict=True):
        assert text not in near
        others = np.sort(np.delete(row, text))[::-1]
        assert row[near] == pytest.approx(others[:5], abs=0.02)  # bfloat16 may swap equal neighbours


def test_more_neighbours_than_texts():
    targets = Targets(single_texts(4), [embeddings(0, 4, 8)], 4, seed=0)
    assert sorted(targets.find_neighbours(np.array([2]), 64)[0]) == [0, 1, 3]
    alone = Targets(single_texts(1), [embeddings(0, 1, 8)], 4, seed=0)
    assert alone.find_neighbours(np.array([0]), 64).shape == (1, 0)


def test_ngrams_hear_parts_of_words():
    same, part, other = ngram_cosines(["sets the font", "sets the font", "setFontSize", "a queue"])[0, 1:]
    assert same == pytest.approx(1)
    assert 0.2 < part < 0.6
    assert other < 0.1
    # " b " has " b", "b " and " b "; " ab " shares one of its six.
    assert ngram_cosines(["ab", "b"])[0, 1] == pytest.approx(1 / 18**0.5)
