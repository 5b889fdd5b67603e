"""The batches of pretraining, and the tokens in their slots."""

import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from train.pretrain.batches import PretrainingBatches, noisy_slot_tokens, predicted_counts
from train.runtime.batching import keyed_uniform
from train.tokens.shards import Shards


@pytest.fixture(scope="module")
def vectors(shared):
    return json.loads((shared / "reference" / "mpnet_inputs.json").read_text())


def test_predicted_counts_equal_those_of_the_original_code(vectors):
    probability = vectors["pred_size"]["pred_prob"]
    for case in vectors["pred_size"]["cases"]:
        # The original code predicts all tokens, with weight 0.
        expected = case["pred_size"] if case["weight"] else 0
        assert predicted_counts(np.array([case["padded_len"]]), probability) == [expected]


def test_noise_proportions(vectors):
    originals, keys = np.full(1_000_000, 500), np.arange(1_000_000)
    slots = noisy_slot_tokens(originals, 1000, keyed_uniform(0, keys), keyed_uniform(1, keys))
    masked, kept = (slots == 4).mean(), (slots == 500).mean()
    assert masked == pytest.approx(0.8, abs=2e-3)
    assert kept == pytest.approx(0.1, abs=2e-3)
    assert slots[slots != 4].min() == 5
    assert slots.max() == 999
    assert vectors["noise_proportions"]["mask"] == pytest.approx(masked, abs=0.02)


def shards(lengths, vocabulary=1000):
    """Return shards of texts with these lengths; all tokens differ, as far as the vocabulary allows."""
    lengths = np.array(lengths)
    tokens = 5 + np.arange(lengths.sum()) % (vocabulary - 5)
    ends = np.cumsum(lengths)
    tokens[ends - lengths], tokens[ends - 1] = 0, 2
    cut = ends[len(ends) // 2] if len(ends) > 1 else ends[-1]
    parts = [part.astype(np.uint16) for part in (tokens[:cut], tokens[cut:]) if len(part)]
    return Shards(parts, lengths)


def batches(lengths, update_tokens=100, seed=3):
    return PretrainingBatches(shards(lengths), 1000, 0.15, update_tokens, seed)


def texts_of(parts):
    """Return (epoch, number of the text) for each text of an update, given in parts for several processes."""
    return [pair for epochs, texts in parts for pair in zip(epochs.tolist(), texts.tolist(), strict=True)]


lengths = st.lists(st.integers(2, 64), min_size=3, max_size=60).filter(lambda some: max(some) > 3)


@given(lengths, st.integers(64, 300), st.integers(0, 5))
def test_every_text_occurs_once_per_epoch(lengths, update_tokens, seed):
    made = batches(lengths, update_tokens, seed)
    updates = -(-3 * made.epoch_tokens // update_tokens)
    seen = [pair for number in range(updates) for pair in texts_of(made.texts_of_update(number, 1))]
    long_enough = [i for i, n in enumerate(lengths) if n > 3]
    for epoch in range(3):
        assert sorted(text for of, text in seen if of == epoch) == long_enough
    orders = {tuple(text for of, text in seen if of == epoch) for epoch in range(3)}
    assert len(long_enough) < 8 or len(orders) == 3


@given(lengths, st.integers(0, 40), st.integers(1, 8))
def test_update_does_not_depend_on_the_number_of_processes(lengths, number, parts):
    alone = texts_of(batches(lengths).texts_of_update(number, 1))
    shared = batches(lengths).texts_of_update(number, parts)
    assert texts_of(shared) == alone
    assert batches(lengths).count_predicted(shared) == batches(lengths).count_predicted(
        batches(lengths).texts_of_update(number, 1)
    )
    for _, texts in shared:  # a part has at most its share and the rest of a text
        assert sum(lengths[t] for t in texts[:-1]) <= -(-100 // parts)


@given(lengths, st.integers(0, 2**40))
def test_any_update_can_be_made_without_the_earlier_ones(lengths, number):
    one, two = batches(lengths), batches(lengths)
    two.texts_of_update(0, 1)
    assert texts_of(one.texts_of_update(number, 1)) == texts_of(two.texts_of_update(number, 1))


@given(lengths, st.integers(0, 9), st.integers(1, 5))
def test_permutation_of_a_text_does_not_depend_on_its_batch(lengths, number, parts):
    made = batches(lengths)

    def rows(parts):
        """Return (epoch, index, rows) for each text of an update, sorted by epoch and index.

        A row is (token, position, visible_originals), as in `PermutedBatch`. The rows are those of the
        content stream and the query stream of two-stream attention.
        """
        found = []
        for epochs, texts in parts:
            if not len(texts):
                continue
            batch = made.make_batch(epochs, texts)
            by_length = np.argsort(np.array(lengths)[texts], kind="stable")
            triples = torch.stack([batch.tokens, batch.positions, batch.visible_originals], 1)
            for place, text in enumerate(by_length):
                found.append((epochs[text], texts[text], triples[batch.texts == place].tolist()))
        return sorted(found, key=lambda row: row[:2])

    assert rows(made.texts_of_update(number, 1)) == rows(made.texts_of_update(number, parts))


def test_texts_survive_the_permutation():
    made = batches([5, 9, 12, 30, 30, 7], 1000)
    epochs, texts = made.texts_of_update(0, 1)[0]
    batch = made.make_batch(epochs, texts)
    by_length = texts[np.argsort(made.shards.lengths[texts], kind="stable")]
    for place, text in enumerate(by_length):
        start, length = made.first_token[text], made.shards.lengths[text]
        plain = (batch.texts == place)[: len(batch.prediction_turns)] & (batch.prediction_turns >= 0)
        tokens = torch.empty(length, dtype=torch.long)
        tokens[batch.positions[: len(batch.prediction_turns)][plain]] = batch.tokens[
            : len(batch.prediction_turns)
        ][plain]
        assert tokens.tolist() == made.shards.read_tokens(np.arange(start, start + length)).tolist()


def test_permutations_differ_between_epochs_and_seeds():
    tokens = []
    for seed, epoch in ((1, 0), (1, 0), (1, 1), (2, 0)):
        made = batches([40] * 8, seed=seed)
        tokens.append(made.make_batch(np.full(8, epoch), np.arange(8)).positions.tolist())
    assert tokens[0] == tokens[1]
    assert tokens[0] != tokens[2] != tokens[3] != tokens[0]


def test_evaluation_texts_are_the_first_texts_of_the_corpus():
    made = batches([4, 9, 3, 12, 30, 7, 8])
    parts = made.evaluation_texts(5, 20)
    assert [part.tolist() for part in parts] == [[0, 1], [3], [4]]


def test_blocks_split_the_token_stream_at_any_token():
    texts = shards([10, 20, 6, 30, 9])
    blocks = texts.blocks(16)
    assert blocks.lengths.tolist() == [16] * (36 // 16 + 39 // 16)
    kept = np.r_[0:32, 36 : 36 + 32]
    assert blocks.read_tokens(np.arange(64)).tolist() == texts.read_tokens(kept).tolist()


def test_too_short_texts_are_an_error():
    with pytest.raises(ValueError, match="no text is long enough"):
        batches([3, 3, 2])
