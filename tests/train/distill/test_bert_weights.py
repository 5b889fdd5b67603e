"""Loading of BERT and MPNet weights: our encoder gives the states of transformers."""

import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModel

from simllm import InputError
from tests.train.distill.conftest import write_json
from train.distill.teachers import KINDS, load_encoder


@pytest.mark.parametrize("kind", KINDS)
def test_our_encoder_has_the_states_of_transformers(teachers, kind):
    encoder = load_encoder(teachers[kind]).eval()
    model = AutoModel.from_pretrained(teachers[kind], add_pooling_layer=False).eval()
    tokens = torch.randint(5, 200, (3, 11), generator=torch.Generator().manual_seed(0))
    mask = torch.arange(11) < torch.tensor([11, 7, 2])[:, None]
    tokens[~mask] = 1 if kind == "mpnet" else 0
    with torch.inference_mode():
        expected = model(input_ids=tokens, attention_mask=mask.long()).last_hidden_state
        found = encoder(tokens, mask)
    assert (found - expected)[mask].abs().max() < 1e-5


def drop_weight(folder, name):
    weights = load_file(folder / "model.safetensors")
    del weights[next(key for key in weights if key.endswith(name))]
    save_file(weights, folder / "model.safetensors")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: write_json(f / "config.json", vocab_size="gone"), "expected a number under vocab_size"),
        (lambda f: write_json(f / "config.json", hidden_size="wide"), "expected a number under hidden_size"),
        (lambda f: write_json(f / "config.json", hidden_size=33), "hidden_size 33 is not a multiple"),
        (
            lambda f: write_json(f / "config.json", hidden_size=40),
            r"word_embeddings\.weight has shape \(300, 32\), expected \(300, 40\)",
        ),
        (lambda f: write_json(f / "config.json", hidden_act="relu"), "only 'gelu'"),
        (
            lambda f: write_json(f / "config.json", position_embedding_type="relative_key"),
            "only absolute positions",
        ),
        (lambda f: write_json(f / "config.json", model_type="roberta"), "expected model_type bert or mpnet"),
        (lambda f: drop_weight(f, "token_type_embeddings.weight"), "no weight .*token_type"),
        (lambda f: drop_weight(f, "layer.1.output.dense.bias"), "no weight .*layer.1.output.dense.bias"),
        (lambda f: (f / "model.safetensors").write_bytes(b"x"), "damaged"),
        (lambda f: (f / "model.safetensors").unlink(), "no model.safetensors"),
        (lambda f: (f / "config.json").write_text("["), "is a JSON array"),
    ],
)
def test_damaged_teacher_gives_a_one_line_error(teachers, tmp_path, damage, message):
    folder = shutil.copytree(teachers["bert"], tmp_path / "teacher")
    damage(folder)
    with pytest.raises(InputError, match=message) as error:
        load_encoder(folder)
    assert str(folder) in str(error.value)
    assert "\n" not in str(error.value)
