import contextlib
import json
import shutil
import warnings

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from transformers import AutoModel, AutoTokenizer

from simllm import SimLLM
from simllm.errors import InputError
from simllm.io import folder_replacement
from simllm.metric import default_model
from simllm.model import saved_model

ODD = [
    "",
    "/** Gets <s> the <mask> name.\n * @return it */",
    "caf\u00e9 \u2260 \U0001f600",
    "1 . 5 items",
    "a",
]


@pytest.fixture(scope="module", params=["random weights", "default model"])
def folder(request, model_folder):
    return model_folder if request.param == "random weights" else default_model()


@pytest.fixture
def texts(comments):
    return [*ODD, *[text for text in comments[:200] if len(text) < 150]]


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def test_three_loaders_give_the_same_embeddings(folder, texts):
    ours = SimLLM(folder).embed(texts)

    sentences = SentenceTransformer(str(folder), device="cpu").encode(texts)
    assert np.abs(ours - sentences).max() < 1e-5

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    assert model.dtype == torch.float32
    batch = tokenizer(texts, padding=True, return_tensors="pt")
    with torch.no_grad():
        hidden = model(**batch).last_hidden_state
    mask = batch["attention_mask"][:, :, None]
    assert np.abs(ours - ((hidden * mask).sum(1) / mask.sum(1)).numpy()).max() < 1e-5
    assert ours.std() > 0.05


@pytest.mark.parametrize("folder", ["random weights"], indirect=True)
def test_three_loaders_truncate_long_texts_equally(folder):
    long = "returns the first value of the list " * 100
    with pytest.warns(UserWarning, match="1 of 1 texts cut at 64 tokens"):
        ours = SimLLM(folder).embed([long])
    sentences = SentenceTransformer(str(folder), device="cpu").encode([long])
    assert np.abs(ours - sentences).max() < 1e-5


def test_the_folder_that_transformers_writes_loads(model_folder, tmp_path):
    AutoModel.from_pretrained(model_folder, add_pooling_layer=False).save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(model_folder).save_pretrained(tmp_path)
    texts = ["adds two numbers", "removes the key"]
    assert np.abs(SimLLM(tmp_path).embed(texts) - SimLLM(model_folder).embed(texts)).max() < 1e-6


def test_half_precision_on_disk_is_float32_in_every_loader(model_folder, tmp_path, texts):
    loaded = saved_model.load(model_folder)
    saved_model.save(tmp_path / "half", loaded.encoder, loaded.tokenizer, loaded.info, "", torch.float16)
    assert (
        load_file(tmp_path / "half" / "model.safetensors")["embeddings.LayerNorm.weight"].dtype
        == torch.float16
    )
    assert AutoModel.from_pretrained(tmp_path / "half").dtype == torch.float32
    sentences = SentenceTransformer(str(tmp_path / "half"), device="cpu").encode(texts)
    assert np.abs(SimLLM(tmp_path / "half").embed(texts) - sentences).max() < 1e-5


@pytest.mark.parametrize("keep_edits", [True, False])
def test_an_edited_card_is_kept_except_in_the_folder_of_a_training_run(model_folder, tmp_path, keep_edits):
    loaded, folder = saved_model.load(model_folder), tmp_path / "model"
    for card in ("# One\n", "# Two\n"):
        refused = pytest.raises(InputError, match=r"README\.md: was changed after simllm wrote it")
        with refused if keep_edits and card == "# Two\n" else contextlib.nullcontext():
            saved_model.save(
                folder, loaded.encoder, loaded.tokenizer, loaded.info, card, keep_edits=keep_edits
            )
        (folder / "README.md").write_text("# Mine\n")


def test_saving_replaces_the_whole_folder(model_folder, tmp_path):
    loaded = saved_model.load(model_folder)
    with folder_replacement.replacing(tmp_path / "model", saved_model.CONTENT) as earlier:
        (earlier / "stale").write_text("")
    info = saved_model.ModelInfo(pooling="cls", provenance={"updates": 3})
    saved_model.save(tmp_path / "model", loaded.encoder, loaded.tokenizer, info, "# Card\n")
    again = saved_model.load(tmp_path / "model")
    assert again.info == info
    assert again.hash == loaded.hash
    assert not (tmp_path / "model" / "stale").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    modes = {file.name: file.stat().st_mode for file in (tmp_path / "model").iterdir() if file.is_file()}
    assert len(set(modes.values())) == 1


def damage_config(folder):
    values = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(values | {"vocab_size": 999}))


def damage_shape(folder):
    weights = load_file(folder / "model.safetensors")
    weights["encoder.layer.0.output.dense.bias"] = torch.zeros(3)
    save_file(weights, folder / "model.safetensors")


def damage_depth(folder):
    values = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(values | {"num_hidden_layers": 1}))


def damage_value(folder):
    weights = load_file(folder / "model.safetensors")
    weights["encoder.layer.0.output.dense.bias"][3] = torch.nan
    save_file(weights, folder / "model.safetensors")


def damage_weights(folder):
    data = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(data[:1000])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (shutil.rmtree, "no such model folder"),
        (lambda folder: (folder / "config.json").unlink(), r"no config\.json"),
        (lambda folder: (folder / "model.safetensors").unlink(), r"no model\.safetensors"),
        (lambda folder: (folder / "config.json").write_text("{"), "not JSON"),
        (lambda folder: (folder / "simllm.json").write_text('{"poling": "mean"}'), "unknown key poling"),
        (damage_config, r"tokenizer\.json has 1000 tokens, config\.json says 999"),
        (damage_shape, r"encoder\.layer\.0\.output\.dense\.bias has shape \(3,\), expected \(32,\)"),
        (damage_depth, r"weight encoder\.layer\.1\.\S+ has no place in the model of config\.json"),
        (damage_value, "holds values that are not finite"),
        (damage_weights, r"model\.safetensors: damaged"),
    ],
)
def test_damaged_folder_is_an_error(model_folder, tmp_path, damage, message):
    folder = tmp_path / "model"
    shutil.copytree(model_folder, folder)
    damage(folder)
    with pytest.raises(InputError, match=message) as error:
        saved_model.load(folder)
    assert str(folder) in str(error.value)
    assert "\n" not in str(error.value)


def test_loading_gives_no_warnings(folder):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SimLLM(folder)
