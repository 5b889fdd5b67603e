import argparse
import json
import os
import random
import sys
import types
import zipfile
from dataclasses import replace

import numpy as np
import pytest
import torch

from simllm import SimLLM
from simllm.errors import InputError
from simllm.model import saved_model
from simllm.model.network import Encoder
from simllm.model.tokenizer import SPECIAL_TOKENS, Tokenizer
from train.fairseq import __main__ as fairseq
from train.fairseq import checkpoint, dictionary
from train.fairseq.checkpoint import import_checkpoint
from train.tokens import vocabulary

# In the order of the BPE merges.
PIECES = ["\N{LOWER ONE EIGHTH BLOCK}", "a", "b", "c", "ab", "abc"]


@pytest.fixture(scope="module")
def tiny(shared):
    """Return the checkpoint and the outputs of a tiny model that the original implementation has made."""
    vectors = json.loads((shared / "reference" / "mpnet_tiny_forward.json").read_text())
    shape, case = vectors["config"], vectors["cases"][0]
    args = argparse.Namespace(
        arch="mpnet_base",
        encoder_embed_dim=shape["dim"],
        encoder_layers=shape["layers"],
        encoder_attention_heads=shape["heads"],
        encoder_ffn_embed_dim=shape["ffn"],
        max_positions=shape["max_positions"],
        activation_fn="gelu",
        dropout=0.1,
        attention_dropout=0.1,
        normalize_before=False,
    )
    model = {name: torch.tensor(value) for name, value in case["state_dict"].items()}
    return {"args": args, "model": model, "optimizer_history": [{"num_updates": 3}]}, case["inference"]


@pytest.fixture
def tiny_files(tiny, tmp_path):
    """Write model.pt, a dict.txt with shuffled tokens, and tokenizer.json."""
    torch.save(tiny[0], tmp_path / "model.pt")
    (tmp_path / "dict.txt").write_text("".join(f"{piece} 5\n" for piece in shuffled(PIECES)))
    vocabulary.bpe([*SPECIAL_TOKENS, *PIECES]).save(str(tmp_path / "tokenizer.json"))
    return tmp_path


def shuffled(pieces):
    return random.Random(1).sample(pieces, len(pieces))


def change(stored, name, value):
    """Return a copy of a checkpoint with another value of one entry, such as `args` or `model`."""
    return {**stored, name: value}


def separate(stored, _):
    """Return a copy of a checkpoint in the format of fairseq 0.12, with other names of weights."""
    model = {}
    for name, tensor in stored["model"].items():
        name = name.replace("decoder.", "encoder.").replace("emb_layer_norm", "layernorm_embedding")
        if "in_proj_" in name:
            for letter, part in zip("qkv", tensor.chunk(3), strict=True):
                model[name.replace("in_proj_", f"{letter}_proj.")] = part
                model[name.replace("self_attn.", "")] = torch.zeros_like(tensor)
        else:
            model[name] = tensor
    model["encoder.sentence_encoder.version"] = torch.tensor([3.0])
    return {"args": None, "cfg": {"model": vars(stored["args"])}, "model": model}


def pickled_meters(stored, monkeypatch):
    """Add training statistics as fairseq 0.8 does, as pickled objects of its classes."""
    module = types.ModuleType("fairseq.meters")
    meter = type("AverageMeter", (), {"__module__": "fairseq.meters"})
    module.AverageMeter = meter
    monkeypatch.setitem(sys.modules, "fairseq", types.ModuleType("fairseq"))
    monkeypatch.setitem(sys.modules, "fairseq.meters", module)
    instance = meter()
    instance.sum = 3.5
    return change(stored, "extra_state", {"train_meters": {"train_loss": instance}})


def without_head(stored, _):
    return change(stored, "model", {k: v for k, v in stored["model"].items() if "lm_head" not in k})


@pytest.mark.parametrize("variant", [lambda stored, _: stored, separate, pickled_meters, without_head])
def test_imported_features_equal_the_original(tiny, tiny_files, monkeypatch, variant):
    stored, inference = tiny
    torch.save(variant(stored, monkeypatch), tiny_files / "model.pt")
    monkeypatch.undo()
    tokenizer = Tokenizer.load(tiny_files / "tokenizer.json")
    import_checkpoint(tiny_files / "model.pt", tiny_files / "dict.txt", tokenizer, tiny_files / "out")
    encoder = saved_model.load(tiny_files / "out").encoder

    ours = {
        theirs: tokenizer.backend.token_to_id(s)
        for s, theirs in dictionary.read_dictionary(tiny_files / "dict.txt").items()
    }
    assert ours != {i: i for i in range(11)}
    tokens = torch.tensor([[ours[i] for i in row] for row in inference["src_tokens"]])
    mask = tokens != 1
    with torch.no_grad():
        hidden = encoder(tokens, mask)
    assert (hidden - torch.tensor(inference["expected_features_last_layer"]))[mask].abs().max() < 1e-4


@pytest.mark.slow
def test_the_folder_loads_in_three_libraries(import_, tiny_files):
    from sentence_transformers import SentenceTransformer
    from transformers import AutoModel

    done = import_("--tokenizer", tiny_files / "tokenizer.json")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    folder, texts = tiny_files / "out", ["abc a", "b", "cab abc"]
    embeddings = SimLLM(folder).embed(texts)
    sentences = SentenceTransformer(str(folder), device="cpu").encode(texts)
    assert np.abs(embeddings - sentences).max() < 1e-5
    ids = torch.tensor([saved_model.load(folder).tokenizer.encode(texts)[0]])
    with torch.no_grad():
        hidden = AutoModel.from_pretrained(folder, add_pooling_layer=False).eval()(ids).last_hidden_state
    assert np.abs(embeddings[0] - hidden[0].mean(0).numpy()).max() < 1e-5
    facts = saved_model.load(folder).info.provenance
    assert facts["architecture"] == "mpnet_base"
    assert str(tiny_files) not in (folder / "simllm.json").read_text()


def test_relative_positions_and_half_precision(model_folder, tokenizer, tmp_path):
    loaded = saved_model.load(model_folder)
    state = {f"encoder.{name}": tensor.half() for name, tensor in loaded.encoder.state_dict().items()}
    model = {f"decoder.{checkpoint.fairseq_name(name)}": tensor for name, tensor in state.items()}
    assert "decoder.sentence_encoder.relative_attention_bias.weight" in model
    config = loaded.encoder.config
    args = argparse.Namespace(
        encoder_embed_dim=config.hidden_size,
        encoder_layers=config.num_hidden_layers,
        encoder_attention_heads=config.num_attention_heads,
        encoder_ffn_embed_dim=config.intermediate_size,
        max_positions=config.max_length,
        activation_fn="gelu",
        dropout=0.1,
        attention_dropout=0.1,
    )
    torch.save({"args": args, "model": model}, tmp_path / "model.pt")
    dictionary.write_dictionary(tmp_path / "dict.txt", tokenizer, np.zeros(1000, int))
    import_checkpoint(tmp_path / "model.pt", tmp_path / "dict.txt", tokenizer, tmp_path / "out")
    again = saved_model.load(tmp_path / "out").encoder
    assert again.config == replace(config, initializer_range=0.02)
    for name, tensor in again.state_dict().items():
        assert torch.equal(tensor, state[f"encoder.{name}"].float()), name


class Malicious:
    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return os.system, (f"touch {self.marker}",)


@pytest.mark.parametrize("zipped", [True, False])
def test_rejects_pickled_code(import_, tiny, tiny_files, zipped):
    stored = {**tiny[0], "extra_state": Malicious(tiny_files / "marker")}
    torch.save(stored, tiny_files / "model.pt", _use_new_zipfile_serialization=zipped)
    done = import_("--tokenizer", tiny_files / "tokenizer.json")
    assert done.returncode == 2
    assert (
        done.stderr == f"error: {tiny_files}/model.pt: refused, it holds more than weights (posix.system)\n"
    )
    assert not (tiny_files / "marker").exists()
    assert not (tiny_files / "out").exists()


@pytest.fixture
def import_(call, tiny_files):
    """Return a function that imports the tiny checkpoint."""
    files = [tiny_files / name for name in ("model.pt", "dict.txt", "out")]
    return lambda *arguments: call(fairseq, "import-checkpoint", *files, *arguments)


def test_a_dictionary_without_tokenizer_is_an_error(import_):
    done = import_()
    assert done.returncode == 2
    assert "expected --sentencepiece with the SentencePiece model" in done.stderr
    assert done.stderr.count("\n") == 1


def with_args(**settings):
    return lambda stored: change(stored, "args", argparse.Namespace(**{**vars(stored["args"]), **settings}))


def damaged_weights(stored):
    prefix, model = "decoder.sentence_encoder.", dict(stored["model"])
    del model[prefix + "layers.1.fc1.bias"]
    model[prefix + "layers.0.fc2.bias"] = torch.zeros(3)
    model[prefix + "emb_layer_norm.bias"] = torch.full((8,), torch.nan)
    model[prefix + "segments.weight"] = torch.zeros(3)
    return change(stored, "model", model)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            damaged_weights,
            r"segments.weight is unknown; .*emb_layer_norm.bias holds values that are not finite; "
            r".*fc2.bias has shape \(3,\), expected \(8,\); .*layers.1.fc1.bias is missing",
        ),
        (
            with_args(encoder_layers=None, dropout=None),
            "encoder_layers is missing; setting dropout is missing",
        ),
        (with_args(encoder_layers=1), "layers.1.fc1.weight is unknown"),
        (with_args(encoder_layers="1"), "num_hidden_layers must be of type int"),
        (with_args(normalize_before=True), "normalize_before=True is not supported"),
        (with_args(activation_fn="relu"), "hidden_act 'relu'"),
        (lambda stored: {"args": stored["args"]}, 'no weights under "model"'),
        (lambda stored: change(stored, "model", {"a": "b"}), 'no weights under "model"'),
        (lambda stored: [stored], 'no weights under "model"'),
        (lambda stored: change(stored, "args", None), "setting encoder_embed_dim is missing"),
    ],
)
def test_all_mismatches_are_reported_together(tiny, tiny_files, damage, message):
    torch.save(damage(tiny[0]), tiny_files / "model.pt")
    tokenizer = Tokenizer.load(tiny_files / "tokenizer.json")
    with pytest.raises(InputError, match=message) as error:
        import_checkpoint(tiny_files / "model.pt", tiny_files / "dict.txt", tokenizer, tiny_files / "out")
    assert str(error.value).startswith(str(tiny_files / "model.pt"))
    assert not (tiny_files / "out").exists()


def test_refuses_checkpoints_that_expand_without_bound(tiny, tiny_files):
    file = tiny_files / "model.pt"
    with zipfile.ZipFile(file) as plain, zipfile.ZipFile(tiny_files / "small.pt", "w") as compressed:
        for part in plain.infolist():
            compressed.writestr(part.filename, plain.read(part), zipfile.ZIP_DEFLATED)
    with pytest.raises(InputError, match="it is compressed"):
        import_checkpoint(tiny_files / "small.pt", tiny_files / "dict.txt", None, tiny_files / "out")
    model = tiny[0]["model"] | {"encoder.wide": torch.zeros(1).expand(10**12)}
    torch.save(change(tiny[0], "model", model), file)
    with pytest.raises(InputError, match=r"encoder\.wide has fewer values than its shape says"):
        import_checkpoint(file, tiny_files / "dict.txt", None, tiny_files / "out")


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04 half a zip"])
def test_rejects_files_that_are_no_checkpoint(tiny_files, content):
    (tiny_files / "model.pt").write_bytes(content)
    with pytest.raises(InputError, match=r"model\.pt: damaged, or not a checkpoint of fairseq"):
        import_checkpoint(tiny_files / "model.pt", tiny_files / "dict.txt", None, tiny_files / "out")


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            [f"{piece} 5" for piece in PIECES[1:]] + ["else 3"],
            r"1 of the .*such as .; 1 of its .*such as else",
        ),
        ([f"{piece} 5" for piece in [*PIECES, "madeupword0000"]], r"12 symbols with <mask>, .*\(11, 8\)"),
        (["a 5", "b"], "line 2: expected a symbol and its count"),
        (["a 5", "a 5"], "line 2: a is in the dictionary already"),
        ([], "empty"),
    ],
)
def test_rejects_a_different_dictionary(tiny_files, lines, message):
    (tiny_files / "dict.txt").write_text("".join(line + "\n" for line in lines))
    tokenizer = Tokenizer.load(tiny_files / "tokenizer.json")
    with pytest.raises(InputError, match=message) as error:
        import_checkpoint(tiny_files / "model.pt", tiny_files / "dict.txt", tokenizer, tiny_files / "out")
    assert str(error.value).startswith(str(tiny_files / "dict.txt"))


def test_tokens_missing_from_the_dictionary_become_unknown(tiny, tiny_files):
    """A token that is missing from the fairseq dictionary gets the embedding of the unknown token.

    `fairseq-preprocess` writes only tokens that occur in the texts, and adds placeholders ("madeupword0000").
    """
    lines = ["<mask> 0", *(f"{piece} 5" for piece in PIECES if piece != "ab"), "madeupword0000 0"]
    (tiny_files / "dict.txt").write_text("\n".join(lines) + "\n")
    tokenizer = Tokenizer.load(tiny_files / "tokenizer.json")
    import_checkpoint(
        tiny_files / "model.pt", tiny_files / "dict.txt", tokenizer, tiny_files / "out", mismatch_as_unk=True
    )
    table = saved_model.load(tiny_files / "out").encoder.embeddings.token.weight
    stored = tiny[0]["model"]["decoder.sentence_encoder.embed_tokens.weight"]
    assert torch.equal(table, stored[[0, 1, 2, 3, 4, 5, 6, 7, 8, 3, 9]])


def test_every_weight_maps_to_a_unique_fairseq_name(small_config):
    names = [f"encoder.{name}" for name in Encoder(small_config).state_dict()]
    assert len({checkpoint.fairseq_name(name) for name in names}) == len(names)
