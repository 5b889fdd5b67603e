import json

import numpy as np
import pytest

from train.pretrain.batches import noisy_slot_tokens, predicted_counts
from train.runtime.batching import keyed_uniform


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
