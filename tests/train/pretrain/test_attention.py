"""Attention on CPUs: texts do not see each other, whatever the texts beside them."""

import sys

import numpy as np
import pytest
import torch

from simllm.errors import InputError
from simllm.model.config import ModelConfig
from simllm.model.network import Encoder
from tests.benchmarks.gradient_exchange import random_shards
from tests.conftest import ROOT
from train.pretrain.batches import predicted_counts
from train.pretrain.config import PretrainConfig
from train.pretrain.language_model import PermutedLanguageModel
from train.pretrain.permutation import lay_out_batch, permute_positions
from train.pretrain.task import PretrainingTask
from train.runtime.batching import keyed_uniform
from train.runtime.config import load
from train.runtime.distributed import World

LENGTHS = [5, 5, 5, 9, 30, 30, 64, 12, 12, 7]


@pytest.fixture
def model(small_config):
    torch.manual_seed(0)
    return PermutedLanguageModel(Encoder(small_config)).eval()


def batch_of(lengths, seed=0):
    lengths = np.array(lengths)
    tokens = np.random.default_rng(seed).integers(5, 1000, lengths.sum())
    predicted = predicted_counts(lengths, 0.15)
    order = permute_positions(tokens, lengths, keyed_uniform(seed, np.arange(len(tokens))))
    return lay_out_batch(tokens, lengths, predicted, order, np.full(predicted.sum(), 4))


@pytest.fixture
def batch():
    return batch_of(LENGTHS)


def test_grouped_attention_equals_attention_within_each_text(model, batch):
    with torch.no_grad():
        together = model.hidden(batch)
        start = 0
        for number, length in enumerate(LENGTHS):
            tokens = np.random.default_rng(0).integers(5, 1000, sum(LENGTHS))[start : start + length]
            m = predicted_counts(np.array([length]), 0.15)
            own = batch.positions[: len(batch.prediction_turns)][
                batch.texts[: len(batch.prediction_turns)] == number
            ][:length]
            alone = lay_out_batch(tokens, np.array([length]), m, own.numpy(), np.full(m[0], 4))
            expected = model.hidden(alone)
            assert (together[batch.texts == number] - expected).abs().max() < 1e-5
            start += length


def test_attention_weights_are_dropped_in_training_only(batch):
    torch.manual_seed(0)
    config = ModelConfig(
        vocab_size=1000, hidden_size=32, num_hidden_layers=1, num_attention_heads=4, intermediate_size=64,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.5, initializer_range=0.2,
    )  # fmt: skip
    dropping = PermutedLanguageModel(Encoder(config))
    with torch.no_grad():
        assert not torch.allclose(dropping(batch), dropping(batch))
        dropping.eval()
        assert torch.equal(dropping(batch), dropping(batch))


def test_pretraining_on_a_gpu_tells_that_triton_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "triton", None)
    monkeypatch.delitem(sys.modules, "train.pretrain.gpu_attention", raising=False)
    config = load(PretrainConfig, ROOT / "configs" / "debug.yaml", ["out=none"])
    data = random_shards(config.model, texts=100)
    with pytest.raises(InputError, match="needs the package triton"):
        PretrainingTask(config, data, data, World(device=torch.device("cuda")))
