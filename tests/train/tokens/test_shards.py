import errno
import functools
import json
import operator
from pathlib import Path

import numpy as np
import pytest

from simllm.errors import InputError
from simllm.text_cleaning import clean
from train.tokens import shards


@pytest.fixture(scope="module")
def texts(comments, tmp_path_factory):
    file = tmp_path_factory.mktemp("texts") / "texts.txt"
    file.write_text("".join(clean(text) + "\n" for text in comments))
    return file


@pytest.fixture
def written(texts, tokenizer, tmp_path, monkeypatch):
    monkeypatch.setattr(shards, "_PART", 20_000)
    return shards.write_or_load(texts, "corpus", tokenizer, 64, tmp_path / "shards")


def test_shards_contain_the_tokenized_texts(written, texts, tokenizer):
    expected = [tokenizer.truncate(ids, 64) for ids in tokenizer.encode(texts.read_text().splitlines())]
    assert len(written.parts) > 3
    assert written.lengths.tolist() == [len(ids) for ids in expected]
    assert written.read_tokens(np.arange(written.tokens)).tolist() == functools.reduce(
        operator.iadd, expected, []
    )
    assert written.truncated == sum(len(ids) > 64 for ids in tokenizer.encode(texts.read_text().splitlines()))
    assert written.truncated > 0


def test_texts_may_be_read_in_any_order(written):
    places = np.random.default_rng(0).integers(0, written.tokens, 5000)
    assert (written.read_tokens(places) == written.read_tokens(np.arange(written.tokens))[places]).all()


def test_existing_shards_are_not_written_again(written, texts, tokenizer, tmp_path):
    file = tmp_path / "shards" / "ids-00000.npy"
    before = file.stat().st_mtime_ns
    shards.write_or_load(texts, "corpus", tokenizer, 64, tmp_path / "shards")
    assert file.stat().st_mtime_ns == before
    shards.write_or_load(texts, "corpus", tokenizer, 32, tmp_path / "shards")
    assert file.stat().st_mtime_ns != before


def cut_off(file):
    file.write_bytes(file.read_bytes()[:-3])


def flip_a_bit(file):
    data = bytearray(file.read_bytes())
    data[-3] ^= 4
    file.write_bytes(data)


@pytest.mark.parametrize("damage", [cut_off, flip_a_bit, Path.unlink])
@pytest.mark.parametrize("name", ["ids-00001.npy", "lengths-00000.npy", "shards.json"])
def test_damaged_shards_are_written_again(written, texts, tokenizer, tmp_path, capsys, name, damage):
    if (name, damage) == ("shards.json", flip_a_bit):
        damage = cut_off  # after a flipped bit, the JSON object may have the same meaning
    expected = written.read_tokens(np.arange(written.tokens))
    damage(tmp_path / "shards" / name)
    with pytest.raises(shards.DamagedShardsError, match=r"damaged|cannot be read"):
        shards.load(tmp_path / "shards")
    again = shards.write_or_load(texts, "corpus", tokenizer, 64, tmp_path / "shards")
    assert "written anew" in capsys.readouterr().err
    assert (again.read_tokens(np.arange(again.tokens)) == expected).all()


def test_unreadable_shard_is_an_error(written, texts, tokenizer, tmp_path, monkeypatch):
    """A shard that cannot be read is not written again, because it may be readable at the next start."""
    file = tmp_path / "shards" / "ids-00001.npy"
    before = file.stat().st_mtime_ns

    def fail(*_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(shards.hashlib, "file_digest", fail)
    with pytest.raises(InputError, match=r"cannot be read \(Input/output error\)"):
        shards.write_or_load(texts, "corpus", tokenizer, 64, tmp_path / "shards")
    assert file.stat().st_mtime_ns == before


@pytest.mark.parametrize("changed", ["corpus", "tokenizer", "max_length"])
def test_shards_of_other_inputs_are_not_used(written, texts, tokenizer, tmp_path, changed):
    info = tmp_path / "shards" / "shards.json"
    before = json.loads(info.read_text())
    other = 32 if changed == "max_length" else "other"
    info.write_text(json.dumps(before | {"made_with": before["made_with"] | {changed: other}}))
    shards.write_or_load(texts, "corpus", tokenizer, 64, tmp_path / "shards")
    assert json.loads(info.read_text()) == before


def test_missing_corpus_file_is_an_error(written, tmp_path):
    (tmp_path / "shards" / "ids-00001.npy").unlink()
    with pytest.raises(ValueError, match=r"ids-00001\.npy: cannot be read"):
        shards.load(tmp_path / "shards")


def test_shards_do_not_depend_on_the_number_of_workers(written, texts, tokenizer, tmp_path, monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    shards.write_or_load(texts, "corpus", tokenizer, 64, tmp_path / "alone")
    one, two = (json.loads((tmp_path / name / "shards.json").read_text()) for name in ("alone", "shards"))
    assert one == two


@pytest.mark.parametrize(
    "change",
    [
        lambda facts: facts | {"parts": []},
        lambda facts: facts | {"parts": 3},
        lambda facts: facts | {"parts": [7]},
        lambda facts: facts | {"parts": [{"texts": 1}]},
        lambda facts: facts | {"parts": [facts["parts"][0] | {"truncated": None}]},
    ],
)
def test_a_wrong_description_of_shards_is_damage_and_they_are_written_again(
    written, texts, tokenizer, tmp_path, change
):
    info = tmp_path / "shards" / "shards.json"
    info.write_text(json.dumps(change(json.loads(info.read_text()))))
    with pytest.raises(shards.DamagedShardsError, match="damaged"):
        shards.load(tmp_path / "shards")
    again = shards.write_or_load(texts, "corpus", tokenizer, 64, tmp_path / "shards")
    assert (again.lengths == written.lengths).all()


def test_lengths_that_do_not_fit_the_ids_are_damage(written, tmp_path):
    folder = tmp_path / "shards"
    ids, lengths = folder / "ids-00000.npy", folder / "lengths-00000.npy"
    values = np.load(lengths)
    values[0] += 10**6
    np.save(lengths, values)
    facts = json.loads((folder / "shards.json").read_text())
    facts["parts"][0]["sha256"] = shards.digest(ids, lengths)
    (folder / "shards.json").write_text(json.dumps(facts))
    with pytest.raises(shards.DamagedShardsError, match=r"not the lengths of ids-00000\.npy"):
        shards.load(folder)
