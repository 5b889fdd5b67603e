"""The permuted language model and its loss."""

import json

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from simllm.model.config import ModelConfig
from simllm.model.network import Encoder
from train.fairseq import checkpoint
from train.pretrain import language_model
from train.pretrain.language_model import PermutedLanguageModel
from train.pretrain.permutation import lay_out_batch


@pytest.fixture(params=[1, 37, 1000])
def inputs(request, monkeypatch):
    monkeypatch.setitem(language_model._LOGITS, "cpu", request.param * 50)  # rows per chunk
    generator = torch.Generator().manual_seed(0)
    hidden, weight, bias = (
        torch.randn(*shape, generator=generator, requires_grad=True) for shape in ((90, 16), (50, 16), (50,))
    )
    targets = torch.randint(0, 50, (90,), generator=generator)
    targets[:7] = 1
    return hidden, weight, bias, targets


def plain(hidden, weight, bias, targets):
    return F.cross_entropy(F.linear(hidden, weight, bias).float(), targets, ignore_index=1, reduction="sum")


def ours(hidden, weight, bias, targets):
    return language_model.linear_cross_entropy(hidden, weight, bias, targets, 1)


def test_loss_and_gradients_equal_plain_cross_entropy(inputs):
    results = []
    for loss_of in (plain, ours):
        loss = loss_of(*inputs)
        results.append([loss.detach(), *torch.autograd.grad(loss / 83, inputs[:3])])
    for expected, actual in zip(*results, strict=True):
        assert (actual - expected).abs().max() <= 1e-6 * max(1, expected.abs().max())


def test_ignored_rows_add_no_loss_and_no_gradient(inputs):
    hidden, *rest = inputs
    (gradient,) = torch.autograd.grad(ours(*inputs), [hidden])
    assert not gradient[:7].any()
    targets = rest[2]
    assert torch.equal(gradient.any(1), targets != 1)
    fewer = ours(hidden[targets != 1], *rest[:2], targets[targets != 1])
    assert ours(*inputs).item() == pytest.approx(fewer.item(), rel=1e-6)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_under_autocast(inputs, dtype):
    expected = torch.autograd.grad(plain(*inputs), inputs[:3])
    with torch.autocast("cpu", dtype):
        loss = ours(*inputs)
    assert loss.dtype == torch.float32
    for one, other in zip(torch.autograd.grad(loss, inputs[:3]), expected, strict=True):
        assert one.dtype == torch.float32
        bound = 2e-2 if dtype == torch.bfloat16 else 1e-5  # float16 is computed in float32
        assert (one - other).abs().max() < bound * other.abs().max()


def test_no_memory_is_kept_without_gradients(inputs):
    with torch.no_grad():
        loss = ours(*inputs)
    assert not loss.requires_grad
    assert loss.item() == pytest.approx(plain(*inputs).item(), rel=1e-6)


TOLERANCE = 1e-4


@pytest.fixture(scope="module")
def vectors(shared):
    return json.loads((shared / "reference" / "mpnet_tiny_forward.json").read_text())


@pytest.fixture(scope="module")
def case(vectors):
    return vectors["cases"][0]


@pytest.fixture(scope="module")
def model(vectors, case):
    shape = vectors["config"]
    config = ModelConfig(
        vocab_size=shape["vocab"],
        hidden_size=shape["dim"],
        num_hidden_layers=shape["layers"],
        num_attention_heads=shape["heads"],
        intermediate_size=shape["ffn"],
        max_position_embeddings=shape["max_positions"] + 2,
    )
    model = PermutedLanguageModel(Encoder(config))
    theirs = checkpoint.canonical_weights(
        {name: torch.tensor(value) for name, value in case["state_dict"].items()}
    )
    model.load_state_dict(checkpoint.rename_weights(theirs, model.state_dict()))
    return model.eval()


def flat(text, order, slots):
    """Make a batch of (B, n) texts, (B, n) permutations, and (B, m) slots (placeholder tokens)."""
    text, order, slots = (np.array(values, dtype=np.int64) for values in (text, order, slots))
    lengths, predicted = np.full(len(text), text.shape[1]), np.full(len(text), slots.shape[1])
    return lay_out_batch(text.flatten(), lengths, predicted, order.flatten(), slots.flatten())


@pytest.fixture(scope="module")
def batch(case):
    batch = flat(case["src_tokens_original"], case["permutation"], case["noised_pred_tokens"])
    content = len(batch.prediction_turns)
    rows = len(batch.shape), -1
    theirs = [row[: content // len(batch.shape)] for row in case["model_src_tokens"]]
    assert batch.tokens[:content].view(rows).tolist() == theirs
    positions = torch.cat([part.view(rows) for part in batch.positions.split([content, 4])], 1)
    assert positions.tolist() == case["model_positions"]
    assert batch.targets.view(rows).tolist() == case["targets"]
    return batch


def test_query_logits_and_loss(model, case, batch):
    with torch.no_grad():
        logits, loss = model.logits(model.hidden(batch)[len(batch.prediction_turns) :]), model(batch)
    expected = torch.tensor(case["expected_query_logits"])
    assert (logits.view_as(expected) - expected).abs().max() < TOLERANCE
    assert loss.item() == pytest.approx(case["expected_loss_sum_nats"], abs=TOLERANCE)


def test_mlm_logits_of_the_content_stream(model, case, batch):
    with torch.no_grad():
        logits = model.logits(model.hidden(batch)[: len(batch.prediction_turns)][batch.prediction_turns < 0])
    expected = torch.tensor(case["expected_mlm_logits_return_mlm"])
    assert (logits.view_as(expected) - expected).abs().max() < TOLERANCE


def test_plain_encoding(model, case):
    tokens = torch.tensor(case["inference"]["src_tokens"])
    mask = tokens != 1
    with torch.no_grad():
        hidden = model.encoder(tokens, mask)
        logits = model.logits(hidden)
    expected = torch.tensor(case["inference"]["expected_features_last_layer"])
    assert (hidden - expected)[mask].abs().max() < TOLERANCE
    assert (logits - torch.tensor(case["inference"]["expected_lm_logits"]))[mask].abs().max() < TOLERANCE


def test_query_rows_do_not_see_later_targets(model):
    """A change of the token that is predicted last changes no logit, because no query row may see it."""
    text, order, slots = [[0, 4, 5, 6, 7, 2]], [[0, 5, 2, 4, 1, 3]], [[10, 10]]

    def logits(text):
        batch = flat(text, order, slots)
        with torch.no_grad():
            return model.logits(model.hidden(batch)[len(batch.prediction_turns) :])

    before = logits(text)
    assert torch.equal(before, logits([[0, 4, 5, 9, 7, 2]]))
    after = logits([[0, 9, 5, 6, 7, 2]])  # predicted first, seen by the second
    assert torch.equal(before[0], after[0])
    assert not torch.allclose(before[1], after[1])


def test_masked_objective_equals_plain_encoding_of_the_masked_text(model):
    text, order, slots = [[0, 4, 5, 6, 7, 2]], [[0, 5, 2, 4, 1, 3]], [[10, 9]]
    batch = flat(text, order, slots)
    with torch.no_grad():
        queries = model.hidden(batch.masked())[len(batch.prediction_turns) :]
        plain = model.encoder(torch.tensor([[0, 10, 5, 9, 7, 2]]))[0]
        permuted = model.hidden(batch)[len(batch.prediction_turns) :]
    torch.testing.assert_close(queries, plain[[1, 3]], atol=1e-6, rtol=1e-5)
    # The first predicted token sees no other predicted token.
    torch.testing.assert_close(queries[0], permuted[0])
    assert not torch.allclose(queries[1], permuted[1], atol=1e-3)
