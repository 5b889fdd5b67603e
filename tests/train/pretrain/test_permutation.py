import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from train.pretrain.permutation import (
    by_position,
    is_visible,
    lay_out_batch,
    pad_streams,
    permute_positions,
    predicted_indices,
    ragged_indices,
)
from train.runtime.batching import keyed_uniform


@pytest.fixture(scope="module")
def vectors(shared):
    return json.loads((shared / "reference" / "mpnet_inputs.json").read_text())


def arrays(*lists):
    return (np.array(values, dtype=np.int64) for values in lists)


def one_text(length, predicted):
    """Return a batch of one text, not permuted, in which the last `predicted` tokens are predicted."""
    order = np.arange(length)
    slots = np.full(predicted, 4)
    return lay_out_batch(order + 10, *arrays([length], [predicted]), order, slots)


def mask(batch):
    """Return the attention mask of a batch, (T, C) bool: T rows, and C columns that they may see."""
    same_text = batch.texts[:, None] == batch.texts[: len(batch.prediction_turns)]
    return same_text & is_visible(batch.visible_originals[:, None], batch.prediction_turns)


def test_masks_equal_those_of_the_original_code(vectors):
    assert len(vectors["masks"]) == 5
    for case in vectors["masks"]:
        seen = mask(one_text(case["n"], case["pred_size"])).int().tolist()
        rows = case["n"] + case["pred_size"]
        assert seen[:rows] == case["content_visible"]
        assert seen[rows:] == case["query_visible"]


def test_example_of_the_paper():
    """In the paper's example, the tokens have the order 1, 3, 2, 4; tokens 2 and 4 are predicted."""
    batch = lay_out_batch(*arrays([11, 12, 13, 14], [4], [2], [0, 2, 1, 3], [4, 4]))
    assert batch.tokens.tolist() == [11, 13, 12, 14, 4, 4, 4, 4]
    assert batch.positions.tolist() == [0, 2, 1, 3, 1, 3, 1, 3]
    assert batch.targets.tolist() == [12, 14]
    first, second = mask(batch)[6:].int().tolist()
    assert first == [1, 1, 0, 0, 1, 1]  # tokens 1 and 3, slots 2 and 4
    assert second == [1, 1, 1, 0, 0, 1]  # tokens 1 and 3, token 2 itself, slot 4


texts = st.lists(
    st.integers(2, 40).flatmap(lambda n: st.tuples(st.just(n), st.integers(1, n))), min_size=1, max_size=8
)


@given(texts, st.randoms(use_true_random=False), st.integers(1, 70))
def test_every_row_sees_every_position_of_its_text_exactly_once(shape, random, step):
    order = np.concatenate([random.sample(range(n), n) for n, _ in shape])
    lengths, predicted = np.array(shape).T
    batch = lay_out_batch(order + 100, lengths, predicted, order, np.full(predicted.sum(), 4))
    columns, filled = len(batch.prediction_turns), pad_streams(batch, step)
    assert len(filled.prediction_turns) % step == len(filled.targets) % step == 0
    for some in (batch, filled):
        seen = mask(some)
        positions = torch.zeros(len(seen), 40).index_add(
            1, some.positions[: len(some.prediction_turns)], seen.float()
        )
        real = some.texts < len(shape)
        assert torch.equal(
            positions[real], (torch.arange(40) < torch.tensor(lengths)[some.texts[real], None]).float()
        )
        queries = seen[len(some.prediction_turns) :][: len(batch.targets)]
        originals = torch.nonzero(some.prediction_turns > 0)[:, 0]
        assert not queries[torch.arange(len(originals)), originals].any()  # no row sees its own target
    assert torch.equal(filled.tokens[:columns], batch.tokens[:columns])
    assert torch.equal(filled.targets[: len(batch.targets)], batch.targets)
    assert (filled.targets[len(batch.targets) :] == 1).all()
    assert batch.text_tokens == filled.text_tokens == lengths.sum()
    assert batch.predicted == filled.predicted == predicted.sum() == len(batch.targets)


@given(texts, st.randoms(use_true_random=False))
def test_sorting_by_position_only_moves_rows(shape, random):
    order = np.concatenate([random.sample(range(n), n) for n, _ in shape])
    lengths, predicted = np.array(shape).T
    batch = lay_out_batch(order + 100, lengths, predicted, order, np.full(predicted.sum(), 4))
    moved, content = by_position(batch), len(batch.prediction_turns)

    def rows(some):
        """Return (rows, 5): text, position, turn or target, token, and number of visible originals."""
        turns = torch.cat([some.prediction_turns, some.targets])
        return torch.stack([some.texts, some.positions, turns, some.tokens, some.visible_originals], 1)

    for stream in (slice(content), slice(content, None)):
        before, after = rows(batch)[stream].tolist(), rows(moved)[stream].tolist()
        assert sorted(before) == sorted(after)
        assert [row[:2] for row in after] == sorted(row[:2] for row in after)
    slots = torch.nonzero(moved.prediction_turns < 0)[:, 0]
    assert torch.equal(moved.prediction_turns[slots - 1], -moved.prediction_turns[slots])


def test_permutation_keeps_texts_apart_and_predicts_no_boundary_token():
    tokens = np.tile([0, *range(20, 30), 2], 500)
    lengths = np.full(500, 12)
    order = permute_positions(tokens, lengths, keyed_uniform(1, np.arange(len(tokens)))).reshape(500, 12)
    assert (np.sort(order, 1) == np.arange(12)).all()
    assert set(order[:, :2].flatten()) == {0, 11}
    counts = np.bincount(order[:, -3:].flatten(), minlength=12)[1:11]
    assert counts.sum() == 1500
    assert counts.min() > 110  # each of ten positions has the expectation 150
    places = predicted_indices(lengths, np.full(500, 3), order.flatten()).reshape(500, 3)
    assert (places == order[:, -3:] + 12 * np.arange(500)[:, None]).all()


def test_ragged_indices():
    text, place, starts = ragged_indices(np.array([2, 0, 3]))
    assert text.tolist() == [0, 0, 2, 2, 2]
    assert place.tolist() == [0, 1, 0, 1, 2]
    assert starts.tolist() == [0, 2, 2]
