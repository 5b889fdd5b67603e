"""Teachers: their weights, their formats, and their stored embeddings."""

import json
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from transformers import AutoModel

from simllm import InputError
from tests.train.distill.conftest import refuse, write_json
from train.distill import teachers as teacher_models
from train.distill.teachers import KINDS, load_encoder
from train.runtime.distributed import World


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


KINDS = ("bert", "mpnet")
CPU = torch.device("cpu")
TEXTS = ["", "adds two lists", "Adds THE lists, unbelievably (x1)!", "漢字", "a", "gets " * 200]


def cosines(one, other):
    return (one * other).sum(1) / np.linalg.norm(one, axis=1) / np.linalg.norm(other, axis=1)


@pytest.mark.parametrize("kind", KINDS)
def test_the_fast_path_gives_the_embeddings_of_sentence_transformers(
    teachers, short_texts, kind, monkeypatch
):
    texts = [*TEXTS, *short_texts[:200]]
    expected = SentenceTransformer(str(teachers[kind]), device="cpu").encode(texts)
    monkeypatch.setattr("sentence_transformers.SentenceTransformer", refuse)
    found = teacher_models.load(teachers[kind], CPU)(texts)
    assert found.dtype == np.float32
    assert np.linalg.norm(found, axis=1) == pytest.approx(1, abs=1e-5)
    assert cosines(found, expected).min() > 0.998  # bfloat16
    assert np.abs(cosines(found[:-1], found[1:])).mean() < 0.99  # the texts differ


@pytest.mark.parametrize(
    ("change", "fast"),
    [
        (lambda f: write_json(f / "1_Pooling/config.json", pooling_mode_cls_token=True), False),
        (
            lambda f: write_json(
                f / "1_Pooling/config.json", pooling_mode_cls_token=True, pooling_mode_mean_tokens=False
            ),
            False,
        ),
        (lambda f: (f / "1_Pooling/config.json").write_text('{"pooling_mode": "mean"}'), True),
        (lambda f: (f / "1_Pooling/config.json").write_text('{"pooling_mode": "cls"}'), False),
        (lambda f: (shutil.rmtree(f / "1_Pooling"), (f / "modules.json").unlink()), True),
        (
            lambda f: (f / "modules.json").write_text('[{"type": "Transformer"}, {"type": "models.Dense"}]'),
            False,
        ),
    ],
)
def test_only_plain_mean_pooling_takes_the_fast_path(teachers, tmp_path, change, fast):
    folder = shutil.copytree(teachers["bert"], tmp_path / "teacher")
    change(folder)
    assert teacher_models._has_mean_pooling(folder) == fast


@pytest.mark.parametrize(
    "kind", ["os.system", "sentence_transformers", "sentence_transformers.x;y", "mine.Dense"]
)
def test_a_teacher_may_only_name_modules_of_sentence_transformers(teachers, tmp_path, kind, monkeypatch):
    folder = shutil.copytree(teachers["bert"], tmp_path / "teacher")
    modules = json.loads((folder / "modules.json").read_text())
    modules.append({"idx": 3, "name": "3", "path": "", "type": kind})
    (folder / "modules.json").write_text(json.dumps(modules))
    monkeypatch.setattr("sentence_transformers.SentenceTransformer", refuse)
    with pytest.raises(InputError, match="is not a module of sentence-transformers"):
        teacher_models.load(folder, CPU)


def test_a_teacher_whose_tokens_have_no_embedding_is_refused(teachers, tmp_path):
    folder = shutil.copytree(teachers["bert"], tmp_path / "teacher")
    values = json.loads((folder / "tokenizer.json").read_text())
    values["model"]["vocab"]["extra"] = len(values["model"]["vocab"])
    (folder / "tokenizer.json").write_text(json.dumps(values))
    with pytest.raises(InputError, match="more tokens than"):
        teacher_models.load(folder, CPU)


def test_other_poolings_use_sentence_transformers(teachers, tmp_path):
    folder = shutil.copytree(teachers["bert"], tmp_path / "teacher")
    pooling = {"word_embedding_dimension": 32, "pooling_mode_cls_token": True}
    (folder / "1_Pooling/config.json").write_text(
        json.dumps(pooling | {"pooling_mode_mean_tokens": False, "pooling_mode_max_tokens": False})
    )
    expected = SentenceTransformer(str(folder), device="cpu").encode(TEXTS)
    assert cosines(teacher_models.load(folder, CPU)(TEXTS), expected).min() > 0.9999
    assert cosines(expected, teacher_models.load(teachers["bert"], CPU)(TEXTS)).min() < 0.999


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "tokenizer.json").unlink(), "cannot be read"),
        (lambda f: (f / "tokenizer.json").write_text("{}"), "not a tokenizer"),
        (lambda f: (f / "modules.json").write_text('{"a": 1}'), "expected a list of modules"),
        (lambda f: (f / "modules.json").write_text("[1]"), "expected a list of modules"),
        (
            lambda f: write_json(f / "config.json", model_type="unknown"),
            "cannot be loaded as a teacher",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_unloadable_teacher_is_an_error(teachers, tmp_path, damage, message):
    folder = shutil.copytree(teachers["bert"], tmp_path / "teacher")
    damage(folder)
    with pytest.raises(InputError, match=message) as error:
        teacher_models.load(folder, CPU)
    assert str(folder) in str(error.value)
    assert "\n" not in str(error.value)


def test_the_identity_depends_on_weights_tokenizer_and_config(teachers, tmp_path):
    names = {teacher_models.identity(folder) for folder in teachers.values()}
    for file in ("model.safetensors", "tokenizer.json", "config.json"):
        folder = shutil.copytree(teachers["bert"], tmp_path / file / "bert")
        assert teacher_models.identity(folder) in names
        with (folder / file).open("ab") as end:
            end.write(b" ")
        names.add(teacher_models.identity(folder))
    assert len(names) == 5


@pytest.fixture
def small_shards(monkeypatch):
    monkeypatch.setattr(teacher_models, "SHARD", 50)


def contents(folder):
    return {file.relative_to(folder): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.usefixtures("small_shards")
def test_embeddings_are_computed_once_and_stored_in_shards(teachers, short_texts, tmp_path, monkeypatch):
    texts = short_texts[:120]
    shards = teacher_models.embed_all(teachers["bert"], texts, tmp_path / "t", World())
    assert [(len(shard), shard.dtype) for shard in shards] == [(50, "f2"), (50, "f2"), (20, "f2")]
    expected = teacher_models.load(teachers["bert"], CPU)(texts)
    found = teacher_models.gather_embeddings(shards, np.arange(120)).numpy()
    assert found == pytest.approx(expected, abs=1e-2)  # bfloat16 in other batches, then float16
    numbers = np.array([119, 3, 50, 49, 3])
    assert (teacher_models.gather_embeddings(shards, numbers).numpy() == found[numbers]).all()
    monkeypatch.setattr(teacher_models, "load", refuse)
    again = teacher_models.embed_all(teachers["bert"], texts, tmp_path / "t", World())
    assert (teacher_models.gather_embeddings(again, np.arange(120)).numpy() == found).all()


@pytest.mark.parametrize(
    "damage",
    [
        lambda shard: (shard / "embeddings.npy").write_bytes(b"\0" * 100),
        lambda shard: (shard / "embeddings.npy").unlink(),
        lambda shard: (shard / "sha256").unlink(),
        lambda shard: (shard / "sha256").write_bytes(b"\xff\xfe"),
    ],
)
@pytest.mark.usefixtures("small_shards")
def test_a_damaged_shard_is_computed_again_with_a_warning(teachers, short_texts, tmp_path, capsys, damage):
    folder, texts = tmp_path / "t", short_texts[:120]
    teacher_models.embed_all(teachers["mpnet"], texts, folder, World())
    assert "warning" not in capsys.readouterr().err
    before = contents(folder)
    damage(folder / "00001")
    teacher_models.embed_all(teachers["mpnet"], texts, folder, World())
    errors = capsys.readouterr().err
    assert errors.count(f"warning: {folder / '00001'}: damaged") == 1
    assert "shard 1 of 1" in errors
    assert contents(folder) == before


@pytest.mark.usefixtures("small_shards")
def test_a_missing_shard_is_computed_without_a_warning(teachers, short_texts, tmp_path, capsys):
    folder, texts = tmp_path / "t", short_texts[:120]
    teacher_models.embed_all(teachers["mpnet"], texts, folder, World())
    before = contents(folder)
    shutil.rmtree(folder / "00002")
    teacher_models.embed_all(teachers["mpnet"], texts, folder, World())
    assert "warning" not in capsys.readouterr().err
    assert contents(folder) == before


@pytest.mark.usefixtures("small_shards")
def test_a_file_of_the_user_is_not_replaced(teachers, short_texts, tmp_path):
    (tmp_path / "t" / "00000").mkdir(parents=True)
    (tmp_path / "t" / "00000" / "embeddings.npy").write_text("mine")
    with pytest.raises(InputError, match="holds files that simllm did not write"):
        teacher_models.embed_all(teachers["mpnet"], short_texts[:50], tmp_path / "t", World())
