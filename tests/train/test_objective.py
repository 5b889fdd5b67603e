"""The tiny model of the original implementation: same weights, same logits, same losses."""

import json

import pytest
import torch

from simllm.config import ModelConfig
from train.objective import PermutedLanguageModel
from train.permute import permute

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
    model = PermutedLanguageModel(config)
    model.load_state_dict(renamed(case["state_dict"], model))
    return model.eval()


def renamed(theirs, model):
    """fairseq's weights under our names; the model has no relative positions, so a zero table."""
    theirs = {name.removeprefix("decoder."): torch.tensor(value) for name, value in theirs.items()}
    state = {
        "encoder.relative_bias.table.weight": torch.zeros_like(model.encoder.relative_bias.table.weight),
        "encoder.embeddings.token.weight": theirs["sentence_encoder.embed_tokens.weight"],
        "encoder.embeddings.position.weight": theirs["sentence_encoder.embed_positions.weight"],
        "head.bias": theirs["lm_head.bias"],
    }
    modules = {
        "encoder.embeddings.norm": "sentence_encoder.emb_layer_norm",
        "head.dense": "lm_head.dense",
        "head.norm": "lm_head.layer_norm",
    }
    for number in range(len(model.encoder.layers)):
        ours, original = f"encoder.layers.{number}.", f"sentence_encoder.layers.{number}."
        modules |= {
            ours + "attention.output": original + "self_attn.out_proj",
            ours + "attention_norm": original + "self_attn_layer_norm",
            ours + "up": original + "fc1",
            ours + "down": original + "fc2",
            ours + "norm": original + "final_layer_norm",
        }
        for kind in ("weight", "bias"):
            parts = theirs[original + f"self_attn.in_proj_{kind}"].chunk(3)
            for name, part in zip(("query", "key", "value"), parts, strict=True):
                state[ours + f"attention.{name}.{kind}"] = part
    for ours, original in modules.items():
        state |= {f"{ours}.{kind}": theirs[f"{original}.{kind}"] for kind in ("weight", "bias")}
    return state


@pytest.fixture(scope="module")
def batch(case):
    batch = permute(
        *(torch.tensor(case[k]) for k in ("src_tokens_original", "permutation", "noised_pred_tokens"))
    )
    content = len(case["model_src_tokens"][0])
    assert batch.tokens[:, :content].tolist() == [row[:content] for row in case["model_src_tokens"]]
    assert batch.positions[:, :content].tolist() == case["model_positions"]
    assert batch.targets.tolist() == case["targets"]
    return batch


def test_query_logits_and_loss(model, case, batch):
    with torch.no_grad():
        logits, loss = model(batch), model.loss(batch)
    assert (logits - torch.tensor(case["expected_query_logits"])).abs().max() < TOLERANCE
    assert loss.item() == pytest.approx(case["expected_loss_sum_nats"], abs=TOLERANCE)


def test_mlm_logits_and_loss_of_the_content_streams_slots(model, case, batch):
    length, predicted = len(case["src_tokens_original"][0]), case["pred_size"]
    with torch.no_grad():
        logits = model.logits(model.hidden(batch)[:, length : length + predicted])
    assert (logits - torch.tensor(case["expected_mlm_logits_return_mlm"])).abs().max() < TOLERANCE
    loss = model.cross_entropy(logits, batch.targets)
    assert loss.item() == pytest.approx(case["expected_mlm_loss_sum_nats"], abs=TOLERANCE)


def test_plain_encoding(model, case):
    tokens = torch.tensor(case["inference"]["src_tokens"])
    mask = tokens != 1
    with torch.no_grad():
        hidden = model.encoder(tokens, mask)
        logits = model.logits(hidden)
    expected = torch.tensor(case["inference"]["expected_features_last_layer"])
    assert (hidden - expected)[mask].abs().max() < TOLERANCE
    assert (logits - torch.tensor(case["inference"]["expected_lm_logits"]))[mask].abs().max() < TOLERANCE


def test_targets_reach_no_query_row_before_their_turn(model):
    """Changing the second predicted original changes no logit: nobody may look at it."""
    text, order = torch.tensor([[0, 4, 5, 6, 7, 2]]), torch.tensor([[0, 5, 2, 4, 1, 3]])
    slots = torch.tensor([[10, 10]])
    changed = text.clone()
    changed[0, 3] = 9
    with torch.no_grad():
        before, after = model(permute(text, order, slots)), model(permute(changed, order, slots))
    assert torch.equal(before, after)
    changed = text.clone()
    changed[0, 1] = 9  # predicted first, seen by the second
    with torch.no_grad():
        after = model(permute(changed, order, slots))
    assert torch.equal(before[:, 0], after[:, 0])
    assert not torch.allclose(before[:, 1], after[:, 1])
