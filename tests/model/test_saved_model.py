"""Model folders: what other libraries load, what is refused, and weights in 8 bits."""

import contextlib
import json
import shutil
import tracemalloc
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from torch import nn
from transformers import AutoModel, AutoTokenizer

from simllm import SimLLM
from simllm.errors import InputError
from simllm.io.output_folder import OutputFolder
from simllm.metric import default_model
from simllm.model import saved_model
from simllm.model.saved_model import BLOCK, are_blocks, shift_prior, to_blocks
from train.release.folder import round_to_blocks

ODD = [
    "",
    "/** Gets <s> the <mask> name.\n * @return it */",
    "caf\u00e9 \u2260 \U0001f600",
    "1 . 5 items",
    "a",
]


@pytest.fixture(
    scope="module", params=["random weights", pytest.param("default model", marks=pytest.mark.slow)]
)
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
    with OutputFolder(tmp_path / "model", saved_model.CONTENT).replacing() as earlier:
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


def test_a_missing_file_of_weights_is_not_called_damaged(tmp_path):
    with pytest.raises(InputError, match=r"/code\.safetensors: no such file$"):
        saved_model.read_headers([tmp_path / "code.safetensors"])


def change_json(name, **values):
    def change(folder):
        file = folder / name
        file.write_text(json.dumps(json.loads(file.read_text()) | values))

    return change


def with_types(dtype):
    def change(folder):
        weights = load_file(folder / "model.safetensors")
        save_file({name: weight.to(dtype) for name, weight in weights.items()}, folder / "model.safetensors")

    return change


def twice(folder):
    file = folder / "config.json"
    file.write_text(file.read_text().replace("{", '{"hidden_size": 64,', 1))


def endless(folder):
    with (folder / "config.json").open("r+") as file:
        file.truncate(10**12)


def unused_terabyte(folder):
    file = folder / "model.safetensors"
    data = file.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header, values = json.loads(data[8 : 8 + size]), data[8 + size :]
    offsets = [len(values), len(values) + 10**12]
    header["pooler.dense.weight"] = {"dtype": "F32", "shape": [500_000, 500_000], "data_offsets": offsets}
    head = json.dumps(header).encode()
    with file.open("wb") as target:
        target.write(len(head).to_bytes(8, "little") + head + values)
        target.truncate(8 + len(head) + offsets[1])


def meaning(**values):
    return change_json("simllm.json", meaning={"head": {"width": 8, "layers": 1, "heads": 2}} | values)


def scale(**values):
    return change_json("simllm.json", calibration={"random": [0.0, 1.0], "fitted_on": ""} | values)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (change_json("config.json", hidden_size=2**40), r"hidden_size must be positive and at most 16,384"),
        (
            change_json("config.json", intermediate_size=2**16),
            r"has shape \(64, 32\), expected \(65536, 32\)",
        ),
        (change_json("config.json", num_hidden_layers=5_000), "num_hidden_layers must be .* at most 256"),
        (change_json("config.json", num_hidden_layers=256), r"no weight encoder\.layer\.2\."),
        (change_json("config.json", max_position_embeddings=2**17), "position_embeddings.weight has shape"),
        (change_json("config.json", relative_attention_num_buckets=512), "buckets must be .* at most 511"),
        (change_json("config.json", relative_attention_num_buckets=3), "buckets must be at least 4"),
        (change_json("config.json", layer_norm_eps=10**400), "layer_norm_eps must be a finite number"),
        (change_json("config.json", vocab_size=10**30), "vocab_size must be a number of at most 19 digits"),
        (change_json("config.json", auto_map={"AutoModel": "code.Model"}), "unknown key auto_map"),
        (change_json("config.json", **{"a\n\x1b[1m": 1}), r"unknown key 'a\\n\\x1b\[1m'"),
        (change_json("config.json", **{f"k{i}": 1 for i in range(5_000)}), "and 4980 more problems"),
        (twice, 'the key "hidden_size" stands twice'),
        (endless, "has more than 256 MiB; expected a JSON object"),
        (unused_terabyte, "weights that the model does not use are larger|damaged"),
        (with_types(torch.int8), r"is of type I8; expected one of BF16, F16, F32, F64"),
        (with_types(torch.int64), r"is of type I64"),
        (with_types(torch.float8_e5m2), r"is of type F8_E5M2"),
        (meaning(slope=-0.5), "meaning: slope must be above 0"),
        (meaning(slope=0), "meaning: slope must be above 0"),
        (meaning(slope=1e300), "meaning: slope must be above 0"),
        (meaning(intercept=-(10**18)), "and intercept between"),
        (meaning(head={"width": 2**28}), "width must be at most 8,192"),
        (scale(random=[0.5, 0.1]), "random must be two or more values that do not decrease"),
        (scale(random=[0.5]), "random must be two or more values that do not decrease"),
        (scale(knots=[0.5]), r"unknown key calibration\.knots"),
        (
            change_json("simllm.json", provenance={"a": json.loads("[" * 120 + "]" * 120)}),
            "nested too deeply",
        ),
    ],
)
def test_a_folder_that_claims_too_much_is_an_error_before_memory_is_used(
    model_folder, tmp_path, damage, message
):
    folder = shutil.copytree(model_folder, tmp_path / "model")
    damage(folder)
    tracemalloc.start()
    with pytest.raises(InputError, match=message) as error:
        saved_model.load(folder)
    assert tracemalloc.get_traced_memory()[1] < 50e6
    tracemalloc.stop()
    assert str(folder) in str(error.value)
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 1500


def test_a_network_too_large_for_this_machine_is_refused_before_its_weights_are_read(tmp_path):
    shape = (2**20, 2**24)
    stored = {"weight": saved_model.StoredWeight(tmp_path / "gone", "weight", "F32", shape)}
    with pytest.raises(InputError, match="its weights need 70,368,744,177,664 bytes of memory"):
        saved_model.read_weights(stored, {"weight": shape}, "here")


def test_loaded_weights_do_not_depend_on_the_file_any_more(model_folder, tmp_path):
    folder = shutil.copytree(model_folder, tmp_path / "model")
    metric = SimLLM(folder)
    before = metric.embed(["adds two numbers"])
    with (folder / "model.safetensors").open("r+b") as file:
        file.write(bytes(file.seek(0, 2)))
        file.truncate(0)
    assert (metric.embed(["adds two numbers"]) == before).all()


def test_loading_gives_no_warnings(folder):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SimLLM(folder)


def weights(seed, rows, columns, spread):
    random = np.random.default_rng(seed)
    values = random.normal(size=(rows * BLOCK, columns)) * 10.0 ** random.uniform(-spread, 0, (1, columns))
    return values.astype(np.float32)


@given(st.integers(0, 2**32), st.integers(1, 4), st.integers(1, 40), st.floats(0, 4))
def test_rounding_error_is_at_most_half_a_step_of_the_block(seed, rows, columns, spread):
    values = weights(seed, rows, columns, spread)
    numbers, scales = to_blocks(values, columns)
    error = np.abs((numbers * scales.astype(np.float32)).reshape(values.shape) - values)
    largest = np.abs(values.reshape(rows, BLOCK, columns)).max(1, keepdims=True)
    # Half a step, the rounding of the scale to float16, and the smallest float16 for tiny weights.
    assert (error.reshape(rows, BLOCK, columns) <= largest * (0.5 / 127 + 2**-10) + 127 * 6.2e-5).all()


def test_rounded_weights_that_were_stored_as_float16_are_recognized_and_kept():
    torch.manual_seed(0)
    network = nn.Sequential(nn.Embedding(50, 64), nn.Linear(64, 96), nn.LayerNorm(96))
    table, linear = network[0].weight, network[1].weight
    assert not are_blocks(linear.detach().numpy().T, 96)
    bias = network[1].bias.clone()
    round_to_blocks(network)
    stored = [weight.detach().half().float().numpy() for weight in (table, linear)]
    assert are_blocks(stored[0], 1)
    # ONNX has the matrix of a linear layer turned round: inputs are the rows.
    turned = np.ascontiguousarray(stored[1].T)
    assert are_blocks(turned, 96)
    numbers, scales = to_blocks(turned, 96)
    again = (numbers * scales.astype(np.float32)).reshape(turned.shape)
    np.testing.assert_allclose(again, turned, rtol=2**-9)
    assert torch.equal(bias, network[1].bias)


def test_sizes_that_blocks_do_not_divide_are_left_alone():
    layer = nn.Linear(BLOCK + 1, 4)
    before = layer.weight.clone()
    round_to_blocks(layer)
    assert torch.equal(before, layer.weight)
    assert not are_blocks(np.zeros((3, 5), np.float32), 1)


def test_prior_shift_of_known_values():
    # Odds of 4 are divided by 9 if one pair in ten has the same meaning, not one in two.
    assert shift_prior(np.array([0.8, 0.5, 0.0, 1.0]), 0.1) == pytest.approx([4 / 13, 0.1, 0, 1])
    assert shift_prior(np.array([0.3]), 0.9) == pytest.approx([27 / 34])
    assert shift_prior(np.array([0.2]), 0.5, calibrated=0.2) == pytest.approx([0.5])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=9), st.floats(0.01, 0.99), st.floats(0.01, 0.99))
def test_prior_shift_is_monotone_and_can_be_undone(values, prior, other):
    values = np.sort(np.array(values))
    shifted = shift_prior(values, prior, other)
    assert ((shifted >= 0) & (shifted <= 1)).all()
    assert (np.diff(shifted) >= 0).all()
    assert shift_prior(shifted, other, prior) == pytest.approx(values, abs=1e-6)
    assert shift_prior(values, prior, prior).tolist() == pytest.approx(values.tolist(), abs=1e-12)
