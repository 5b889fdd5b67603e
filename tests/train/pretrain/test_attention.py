"""Two implementations of attention agree, forward and backward; in both, texts do not see each other."""

import numpy as np
import pytest
import torch
import torch._dynamo.utils
from torch.nn.attention import flex_attention

from simllm.model.config import ModelConfig
from simllm.model.network import Encoder
from train.pretrain.attention import BLOCK_SIZE, flex_attention_over_texts, grouped_attention
from train.pretrain.batches import predicted_counts
from train.pretrain.language_model import PermutedLanguageModel
from train.pretrain.permutation import lay_out_batch, pad_streams, permute_positions
from train.runtime.batching import keyed_uniform

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


def hidden(model, batch, make_attention):
    """Return the hidden states of the content and the query stream, without padding."""
    model.make_attention = make_attention
    rows = model.hidden(batch)
    return rows[batch.texts < len(batch.shape)]


def test_grouped_attention_equals_attention_within_each_text(model, batch):
    with torch.no_grad():
        together = hidden(model, batch, grouped_attention)
        start = 0
        for number, length in enumerate(LENGTHS):
            tokens = np.random.default_rng(0).integers(5, 1000, sum(LENGTHS))[start : start + length]
            m = predicted_counts(np.array([length]), 0.15)
            own = batch.positions[: len(batch.prediction_turns)][
                batch.texts[: len(batch.prediction_turns)] == number
            ][:length]
            alone = lay_out_batch(tokens, np.array([length]), m, own.numpy(), np.full(m[0], 4))
            expected = hidden(model, alone, grouped_attention)
            assert (together[batch.texts == number] - expected).abs().max() < 1e-5
            start += length


def test_flex_attention_equals_grouped_attention(model, batch):
    with torch.no_grad():
        expected, filled = hidden(model, batch, grouped_attention), pad_streams(batch, BLOCK_SIZE)
        actual = hidden(model, filled, flex_attention_over_texts)
        assert len(filled.tokens) % BLOCK_SIZE == 0
        assert (actual - expected).abs().max() < 1e-5
        loss = model(filled).item()
        model.make_attention = grouped_attention
        assert loss == pytest.approx(model(batch).item(), rel=1e-6)


def test_flex_attention_skips_blocks_without_a_common_text(model):
    batch = pad_streams(batch_of([32] * 60), BLOCK_SIZE)
    mix = flex_attention_over_texts(batch, model.encoder.relative_bias)
    mask = mix.keywords["block_mask"]
    assert mask.sparsity() > 80
    with torch.no_grad():
        q, k, v = torch.randn(3, 1, 4, len(batch.tokens), 8).unbind()
        k, v = (x[:, :, : len(batch.prediction_turns)] for x in (k, v))
        expected = grouped_attention(batch_of([32] * 60), model.encoder.relative_bias, 0.0)
        real = batch.texts < 60
        columns = real[: len(batch.prediction_turns)]
        assert torch.allclose(
            mix(q, k, v)[:, :, real], expected(q[:, :, real], k[:, :, columns], v[:, :, columns]), atol=1e-5
        )


@pytest.fixture
def backward_on_cpus(monkeypatch):
    """Allow the backward pass of flex attention on CPUs, which a check of PyTorch forbids."""
    monkeypatch.setattr(flex_attention, "_validate_device", lambda *tensors: None)


def gradients(model, batch, make_attention):
    model.make_attention = make_attention
    model.zero_grad()
    (model(batch) / batch.predicted).backward()
    return {name: p.grad.clone() for name, p in model.named_parameters()}


def test_flex_attention_has_the_same_gradients(model, batch, backward_on_cpus):
    expected = gradients(model, batch, grouped_attention)
    actual = gradients(model, pad_streams(batch, BLOCK_SIZE), flex_attention_over_texts)
    assert expected["encoder.relative_bias.table.weight"].abs().max() > 1e-4
    for name, gradient in expected.items():
        assert (actual[name] - gradient).abs().max() < 1e-6, name


@pytest.mark.slow
def test_one_compilation_serves_all_layers_and_all_batches(model, backward_on_cpus):
    expected = gradients(model, batch_of(LENGTHS, 3), grouped_attention)
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    for layer in model.encoder.layers:
        layer.compile(dynamic=False, backend="aot_eager")
    for seed in range(4):
        actual = gradients(
            model, pad_streams(batch_of(LENGTHS, seed), 2 * BLOCK_SIZE), flex_attention_over_texts
        )
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1
    for name, gradient in expected.items():
        assert (actual[name] - gradient).abs().max() < 1e-6, name


def test_only_grouped_attention_supports_attention_dropout(batch, model):
    with pytest.raises(ValueError, match="does not support dropout"):
        flex_attention_over_texts(batch, model.encoder.relative_bias, 0.1)
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
