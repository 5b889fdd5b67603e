import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from train.permute import noisy_slots, permutations, permute, predicted_count, visibility


@pytest.fixture(scope="module")
def vectors(shared):
    return json.loads((shared / "reference" / "mpnet_inputs.json").read_text())


def test_masks_of_the_original(vectors):
    assert len(vectors["masks"]) == 5
    for case in vectors["masks"]:
        visible = visibility(case["n"], case["pred_size"]).int().tolist()
        rows = case["n"] + case["pred_size"]
        assert visible[:rows] == case["content_visible"]
        assert visible[rows:] == case["query_visible"]


def test_predicted_counts_of_the_original(vectors):
    probability = vectors["pred_size"]["pred_prob"]
    for case in vectors["pred_size"]["cases"]:
        expected = case["pred_size"] if case["weight"] else 0  # the original predicts all, weighted 0
        assert predicted_count(case["padded_len"], probability) == expected


def test_the_papers_example():
    """Order 1, 3, 2, 4 with c = 2: tokens 2 and 4 are predicted, token 2 first."""
    text = torch.tensor([[11, 12, 13, 14]])
    batch = permute(text, torch.tensor([[0, 2, 1, 3]]), torch.tensor([[4, 4]]))
    assert batch.tokens.tolist() == [[11, 13, 12, 14, 4, 4, 4, 4]]
    assert batch.positions.tolist() == [[0, 2, 1, 3, 1, 3, 1, 3]]
    assert batch.targets.tolist() == [[12, 14]]
    first, second = batch.visible[0, 6:].int().tolist()
    assert first == [1, 1, 0, 0, 1, 1]  # tokens 1 and 3, slots 2 and 4
    assert second == [1, 1, 1, 0, 0, 1]  # tokens 1 and 3, token 2 itself, slot 4


@given(st.integers(2, 80), st.data())
def test_every_row_sees_every_position_exactly_once(length, data):
    predicted = data.draw(st.integers(1, length))
    visible = visibility(length, predicted)
    assert visible.shape == (length + 2 * predicted, length + predicted)
    positions = torch.cat([torch.arange(length), torch.arange(length - predicted, length)])
    seen = torch.zeros(len(visible), length).index_add(1, positions, visible.float())
    assert (seen == 1).all()


def test_no_query_row_can_see_its_own_target():
    for length in range(4, 40):
        predicted = predicted_count(length, 0.3)
        queries = visibility(length, predicted)[length + predicted :]
        assert not queries[:, length - predicted : length].diagonal().any()


def test_boundaries_are_never_predicted():
    order = permutations(500, 12, 3, torch.Generator().manual_seed(0))
    assert (order.sort(1).values == torch.arange(12)).all()
    assert set(order[:, -3:].flatten().tolist()) == set(range(1, 11))
    with pytest.raises(ValueError, match="two are boundaries"):
        permutations(1, 4, 3, torch.Generator())


def test_noise_proportions(vectors):
    originals = torch.full((1_000_000,), 500)
    slots = noisy_slots(originals, 4, 5, 1000, torch.Generator().manual_seed(0))
    masked = (slots == 4).float().mean().item()
    kept = (slots == 500).float().mean().item()
    assert masked == pytest.approx(0.8, abs=2e-3)
    assert kept == pytest.approx(0.1, abs=2e-3)
    assert slots[slots != 4].min() == 5
    assert slots.max() == 999
    assert vectors["noise_proportions"]["mask"] == pytest.approx(masked, abs=0.02)
