"""Loading of teachers: our fast code gives the embeddings of sentence-transformers."""

import json
import shutil

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from simllm import InputError
from tests.train.distill.conftest import refuse, write_json
from train.distill import teachers as module

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
    found = module.load(teachers[kind], CPU)(texts)
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
    assert module._has_mean_pooling(folder) == fast


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
        module.load(folder, CPU)


def test_a_teacher_whose_tokens_have_no_embedding_is_refused(teachers, tmp_path):
    folder = shutil.copytree(teachers["bert"], tmp_path / "teacher")
    values = json.loads((folder / "tokenizer.json").read_text())
    values["model"]["vocab"]["extra"] = len(values["model"]["vocab"])
    (folder / "tokenizer.json").write_text(json.dumps(values))
    with pytest.raises(InputError, match="more tokens than"):
        module.load(folder, CPU)


def test_other_poolings_use_sentence_transformers(teachers, tmp_path):
    folder = shutil.copytree(teachers["bert"], tmp_path / "teacher")
    pooling = {"word_embedding_dimension": 32, "pooling_mode_cls_token": True}
    (folder / "1_Pooling/config.json").write_text(
        json.dumps(pooling | {"pooling_mode_mean_tokens": False, "pooling_mode_max_tokens": False})
    )
    expected = SentenceTransformer(str(folder), device="cpu").encode(TEXTS)
    assert cosines(module.load(folder, CPU)(TEXTS), expected).min() > 0.9999
    assert cosines(expected, module.load(teachers["bert"], CPU)(TEXTS)).min() < 0.999


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
        module.load(folder, CPU)
    assert str(folder) in str(error.value)
    assert "\n" not in str(error.value)
