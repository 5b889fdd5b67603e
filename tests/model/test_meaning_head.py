"""The meaning head: symmetry, padding, and storage in the model folder."""

import json
import shutil
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from transformers import AutoModel

from simllm import InputError, SimLLM
from simllm.model import saved_model
from simllm.model.config import HeadConfig
from simllm.model.network import MeaningHead
from simllm.model.torch_engine import prepare_module
from tests.command import run

WIDTH = 16


@pytest.fixture(scope="module")
def head(small_config):
    torch.manual_seed(0)
    return MeaningHead(HeadConfig(WIDTH, 2, 2), small_config).eval()


def masks(lengths, longest):
    return torch.arange(longest) < torch.tensor(lengths)[:, None]


@settings(max_examples=25)
@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=5),
    st.integers(0, 4),
    st.integers(0, 1000),
)
def test_logit_depends_only_on_its_two_texts(head, lengths, padding, seed):
    """The logit does not depend on the order of the two texts, on padding, or on other pairs of the batch."""
    random = torch.Generator().manual_seed(seed)
    longest = max(max(pair) for pair in lengths) + padding
    a, b = torch.randn(2, len(lengths), longest, WIDTH, generator=random) * 3  # padding is not zero
    a_mask, b_mask = (masks([pair[side] for pair in lengths], longest) for side in (0, 1))
    with torch.inference_mode():
        together = head(a, a_mask, b, b_mask)
        assert torch.allclose(head(b, b_mask, a, a_mask), together, atol=1e-5)
        for i, (m, n) in enumerate(lengths):
            ones = [torch.ones(1, size, dtype=torch.bool) for size in (m, n)]
            alone = head(a[i : i + 1, :m], ones[0], b[i : i + 1, :n], ones[1])
            assert torch.allclose(alone[0], together[i], atol=1e-5)


def test_logit_depends_on_the_word_order(head):
    """If the hidden states of a text are reversed, the logit changes."""
    states = torch.randn(1, 6, WIDTH, generator=torch.Generator().manual_seed(1))
    mask = torch.ones(1, 6, dtype=torch.bool)
    with torch.inference_mode():
        one, other = head(states, mask, states, mask), head(states, mask, states.flip(1), mask)
    assert abs(float(one - other)) > 1e-4


@pytest.mark.parametrize("mode", ["exact", "fast"])
def test_a_packed_copy_gives_the_same_logits(head, mode):
    before = {name: tensor.clone() for name, tensor in head.state_dict().items()}
    copy = prepare_module(head, mode)
    assert prepare_module(head, "plain") is head
    a, b = torch.randn(2, 4, 7, WIDTH, generator=torch.Generator().manual_seed(2))
    mask = masks([7, 5, 3, 1], 7)
    dtype = torch.float32 if mode == "exact" else torch.bfloat16
    with torch.inference_mode():
        found = copy(a.to(dtype), mask, b.to(dtype), mask)
        expected = head(a, mask, b, mask)
    assert found.dtype == dtype
    assert torch.allclose(found.float(), expected, atol=1e-5 if mode == "exact" else 0.05)
    assert all(torch.equal(tensor, before[name]) for name, tensor in head.state_dict().items())


@pytest.mark.parametrize("shape", [{"width": 0}, {"layers": 0}, {"heads": -1}, {"encoder_layers": 0}])
def test_a_shape_that_is_not_positive_is_refused(shape):
    with pytest.raises(InputError, match="width, layers, heads and encoder_layers must be positive"):
        HeadConfig(**shape)


def test_a_width_that_the_heads_do_not_divide_is_refused():
    with pytest.raises(InputError, match="width must be a multiple of heads"):
        HeadConfig(width=10)


def test_a_head_cannot_read_more_layers_than_the_encoder_has(small_config):
    with pytest.raises(InputError, match="encoder_layers 9 is more than the"):
        MeaningHead(HeadConfig(encoder_layers=9), small_config)


def test_a_folder_with_a_head_loads_as_it_was_saved(head_folder, model_folder):
    loaded, plain = saved_model.load(head_folder), saved_model.load(model_folder)
    assert loaded.info.meaning.head == loaded.head.config
    assert not loaded.head.training
    assert loaded.hash == plain.hash  # encoder and configuration are the same
    assert loaded.head_hash
    assert (plain.head, plain.head_hash) == (None, "")
    stored = load_file(head_folder / saved_model.HEAD)
    assert all(torch.equal(tensor, stored[name]) for name, tensor in loaded.head.state_dict().items())
    modes = {file.stat().st_mode for file in head_folder.iterdir() if file.is_file()}
    assert len(modes) == 1


def test_a_folder_saved_without_its_head_loads(head_folder, tmp_path):
    loaded = saved_model.load(head_folder)
    saved_model.save(tmp_path / "model", loaded.encoder, loaded.tokenizer, loaded.info, "")
    again = saved_model.load(tmp_path / "model")
    assert (again.head, again.info.meaning) == (None, None)


def test_a_folder_from_before_encoder_layers_keeps_its_hash(model_folder, tmp_path):
    loaded = saved_model.load(model_folder)
    head = MeaningHead(HeadConfig(WIDTH, 1, 2), loaded.encoder.config)
    info = saved_model.ModelInfo(meaning=saved_model.MeaningInfo(head.config))
    saved_model.save(tmp_path / "model", loaded.encoder, loaded.tokenizer, info, "", head=head)
    file = tmp_path / "model" / "simllm.json"
    now, values = saved_model.load(tmp_path / "model"), json.loads(file.read_text())
    del values["meaning"]["head"]["encoder_layers"]
    file.write_text(json.dumps(values))
    assert saved_model.load(tmp_path / "model").head_hash == now.head_hash


def test_loading_a_head_keeps_the_random_state(head_folder):
    before = torch.get_rng_state()
    saved_model.load(head_folder)
    assert torch.equal(torch.get_rng_state(), before)


def test_the_head_is_in_the_signature(head_folder, model_folder, tmp_path):
    signature = SimLLM(head_folder).signature
    assert f"|head:{saved_model.load(head_folder).head_hash}" in signature
    assert "head:" not in SimLLM(model_folder).signature
    assert "head:" not in SimLLM(head_folder, similarity="f1").signature

    other = shutil.copytree(head_folder, tmp_path / "calibrated")
    info = json.loads((other / "simllm.json").read_text())
    info["meaning"] |= {"slope": 2.0}
    (other / "simllm.json").write_text(json.dumps(info))
    assert SimLLM(other).signature not in (signature, SimLLM(model_folder).signature)

    other = shutil.copytree(head_folder, tmp_path / "trained")
    weights = load_file(other / saved_model.HEAD)
    weights["logit.bias"] += 1
    save_file(weights, other / saved_model.HEAD)
    assert SimLLM(other).signature not in (signature, SimLLM(model_folder).signature)


def test_the_other_libraries_load_a_folder_with_a_head(head_folder, model_folder, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    texts = ["adds two numbers", "removes the key from the map", ""]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        AutoModel.from_pretrained(head_folder, add_pooling_layer=False)
    sentences = SentenceTransformer(str(head_folder), device="cpu").encode(texts)
    assert np.abs(sentences - SimLLM(model_folder).embed(texts)).max() < 1e-5


def change_shape(folder):
    info = json.loads((folder / "simllm.json").read_text())
    info["meaning"]["head"]["layers"] = 1
    (folder / "simllm.json").write_text(json.dumps(info))


def set_weight(folder, name, value):
    weights = load_file(folder / saved_model.HEAD)
    weights[name] = value
    save_file(weights, folder / saved_model.HEAD)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            lambda f: (f / saved_model.HEAD).unlink(),
            r"no such file; simllm\.json describes a meaning head",
        ),
        (lambda f: (f / saved_model.HEAD).write_bytes(b""), "not the meaning head"),
        (lambda f: (f / saved_model.HEAD).write_bytes(b"\x80\x02pickled"), "not the meaning head"),
        (
            lambda f: (f / saved_model.HEAD).write_bytes((f / saved_model.HEAD).read_bytes()[:-100]),
            "not the meaning head",
        ),
        (lambda f: set_weight(f, "logit.bias", torch.tensor([torch.nan])), r"logit\.bias holds values that"),
        (
            lambda f: set_weight(f, "logit.bias", torch.zeros(3)),
            r"logit\.bias has shape \(3,\), expected \(1,\)",
        ),
        (lambda f: set_weight(f, "more", torch.zeros(3)), "weight more has no place"),
        (change_shape, r"weight layers\.1\.\S+ has no place"),
    ],
)
def test_damaged_head_gives_a_one_line_error(head_folder, tmp_path, damage, message):
    folder = shutil.copytree(head_folder, tmp_path / "model")
    damage(folder)
    with pytest.raises(InputError, match=message) as error:
        saved_model.load(folder)
    assert str(folder / saved_model.HEAD) in str(error.value)
    done = run("score", "adds two", "sums two", "--model", folder)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("meaning", "message"),
    [
        ({"head": {"width": 10}}, "width must be a multiple of heads"),
        ({"head": {}, "slope": "steep"}, "slope must be of type float"),
        ({"head": {}, "slop": 1.0}, "unknown key meaning.slop"),
        ({"head": {"encoder_layers": 9}}, "simllm.json: meaning head: encoder_layers 9 is more than the enc"),
        ({}, "missing key meaning.head"),
    ],
)
def test_wrong_description_of_the_head_is_an_error(head_folder, tmp_path, meaning, message):
    folder = shutil.copytree(head_folder, tmp_path / "model")
    info = json.loads((folder / "simllm.json").read_text())
    (folder / "simllm.json").write_text(json.dumps(info | {"meaning": meaning}))
    with pytest.raises(InputError, match=message):
        saved_model.load(folder)
