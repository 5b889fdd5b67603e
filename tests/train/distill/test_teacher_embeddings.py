"""The teachers' embeddings of all texts, which are computed once and stored in shards."""

import shutil

import numpy as np
import pytest
import torch

from simllm import InputError
from tests.train.distill.conftest import refuse
from train.distill import teachers as module
from train.distill import teachers as teacher_models
from train.runtime.distributed import World

CPU = torch.device("cpu")


def test_the_identity_depends_on_weights_tokenizer_and_config(teachers, tmp_path):
    names = {module.identity(folder) for folder in teachers.values()}
    for file in ("model.safetensors", "tokenizer.json", "config.json"):
        folder = shutil.copytree(teachers["bert"], tmp_path / file / "bert")
        assert module.identity(folder) in names
        with (folder / file).open("ab") as end:
            end.write(b" ")
        names.add(module.identity(folder))
    assert len(names) == 5


@pytest.fixture
def small_shards(monkeypatch):
    monkeypatch.setattr(module, "SHARD", 50)


def contents(folder):
    return {file.relative_to(folder): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.usefixtures("small_shards")
def test_embeddings_are_computed_once_and_stored_in_shards(teachers, short_texts, tmp_path, monkeypatch):
    texts = short_texts[:120]
    shards = module.embed_all(teachers["bert"], texts, tmp_path / "t", World())
    assert [(len(shard), shard.dtype) for shard in shards] == [(50, "f2"), (50, "f2"), (20, "f2")]
    expected = teacher_models.load(teachers["bert"], CPU)(texts)
    found = module.gather_embeddings(shards, np.arange(120)).numpy()
    assert found == pytest.approx(expected, abs=1e-2)  # bfloat16 in other batches, then float16
    numbers = np.array([119, 3, 50, 49, 3])
    assert (module.gather_embeddings(shards, numbers).numpy() == found[numbers]).all()
    monkeypatch.setattr(module, "load", refuse)
    again = module.embed_all(teachers["bert"], texts, tmp_path / "t", World())
    assert (module.gather_embeddings(again, np.arange(120)).numpy() == found).all()


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
    module.embed_all(teachers["mpnet"], texts, folder, World())
    assert "warning" not in capsys.readouterr().err
    before = contents(folder)
    damage(folder / "00001")
    module.embed_all(teachers["mpnet"], texts, folder, World())
    errors = capsys.readouterr().err
    assert errors.count(f"warning: {folder / '00001'}: damaged") == 1
    assert "shard 1 of 1" in errors
    assert contents(folder) == before


@pytest.mark.usefixtures("small_shards")
def test_a_missing_shard_is_computed_without_a_warning(teachers, short_texts, tmp_path, capsys):
    folder, texts = tmp_path / "t", short_texts[:120]
    module.embed_all(teachers["mpnet"], texts, folder, World())
    before = contents(folder)
    shutil.rmtree(folder / "00002")
    module.embed_all(teachers["mpnet"], texts, folder, World())
    assert "warning" not in capsys.readouterr().err
    assert contents(folder) == before


@pytest.mark.usefixtures("small_shards")
def test_a_file_of_the_user_is_not_replaced(teachers, short_texts, tmp_path):
    (tmp_path / "t" / "00000").mkdir(parents=True)
    (tmp_path / "t" / "00000" / "embeddings.npy").write_text("mine")
    with pytest.raises(InputError, match="holds files that simllm did not write"):
        module.embed_all(teachers["mpnet"], short_texts[:50], tmp_path / "t", World())
