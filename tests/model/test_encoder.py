import json
from functools import partial

import pytest
import torch
from transformers import MPNetModel

from simllm.model import saved_model
from simllm.model.network import Encoder, attention


@pytest.fixture(scope="module")
def encoder(model_folder):
    return saved_model.load(model_folder).encoder


def padded(texts, length, seed=0):
    """Return random token ids of several lengths, padded to the longest."""
    tokens = torch.randint(5, 1000, (texts, length), generator=torch.Generator().manual_seed(seed))
    lengths = torch.linspace(2, length, texts).long()
    mask = torch.arange(length) < lengths[:, None]
    return tokens.masked_fill(~mask, 1), mask


def test_hidden_states_equal_those_of_transformers(encoder, model_folder):
    theirs = MPNetModel.from_pretrained(model_folder, add_pooling_layer=False).eval()
    tokens, mask = padded(7, 64)
    with torch.no_grad():
        expected = theirs(tokens, attention_mask=mask.long()).last_hidden_state
        actual = encoder(tokens, mask)
    assert (actual - expected)[mask].abs().max() < 1e-5
    assert actual[mask].std() > 0.1


def test_states_of_several_layers_equal_those_of_transformers(encoder, model_folder):
    theirs = MPNetModel.from_pretrained(model_folder, add_pooling_layer=False).eval()
    tokens, mask = padded(7, 64)
    with torch.no_grad():
        expected = theirs(tokens, attention_mask=mask.long(), output_hidden_states=True).hidden_states
        actual = encoder(tokens, mask, last_layers=2)
    assert (actual - torch.cat(expected[-2:], dim=-1))[mask].abs().max() < 1e-5


def test_padding_does_not_change_hidden_states(encoder):
    tokens, mask = padded(7, 64)
    with torch.no_grad():
        together = encoder(tokens, mask)
        for row, length in enumerate(mask.sum(1)):
            alone = encoder(tokens[row : row + 1, :length])
            assert (alone[0] - together[row, :length]).abs().max() < 1e-5


def test_row_order_does_not_matter(encoder):
    """Tokens in another order, but with their old positions, keep their hidden states."""
    tokens, _ = padded(1, 40)
    order = torch.randperm(40, generator=torch.Generator().manual_seed(1))[None]
    assert encoder.relative_bias.table.weight.std() > 0.1
    with torch.no_grad():
        plain = encoder(tokens)
        mix = partial(attention, attn_mask=encoder.relative_bias(order, order))
        permuted = encoder.encode_rows(tokens[:, order[0]], order, 40, mix)
    assert (permuted - plain[:, order[0]]).abs().max() < 1e-5
    assert (plain - plain[:, order[0]]).abs().max() > 0.1


def test_relative_buckets_equal_those_of_the_original_code(encoder, shared):
    vectors = json.loads((shared / "reference" / "mpnet_inputs.json").read_text())["relative_position_bucket"]
    buckets = encoder.relative_bias.bucket(torch.tensor(vectors["relative_position"]))
    assert buckets.tolist() == vectors["bucket"]


def test_number_of_parameters_of_the_base_size(shared):
    from simllm.model.config import ModelConfig
    from train.pretrain.language_model import PermutedLanguageModel

    vectors = json.loads((shared / "reference" / "mpnet_tiny_forward.json").read_text())
    counts = vectors["parameter_count_40k_dictionary"]
    config = ModelConfig(vocab_size=counts["dictionary_size_with_specials_and_mask"])
    with torch.device("meta"):
        model = PermutedLanguageModel(Encoder(config))
    assert sum(p.numel() for p in model.parameters()) == counts["mpnet_rel_base"]


def test_initialisation(small_config):
    weights = Encoder(small_config).state_dict()
    assert weights["layers.0.up.weight"].std() == pytest.approx(0.2, rel=0.1)
    assert not weights["layers.0.up.bias"].any()
    assert not weights["embeddings.token.weight"][1].any()
