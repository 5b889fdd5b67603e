import itertools
import struct
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simllm.errors import InputError
from train.fairseq import dataset, dictionary
from train.fairseq.__main__ import main


def opened(stem):
    """Read the texts of a memory-mapped dataset as fairseq does, by pointer and size."""
    index, data = stem.with_suffix(".idx").read_bytes(), stem.with_suffix(".bin").read_bytes()
    magic, version, code, count = struct.unpack_from("<9sQBQ", index)
    assert (magic, version) == (b"MMIDIDX\0\0", 1)
    start = struct.calcsize("<9sQBQ")
    sizes = np.frombuffer(index, "<i4", count, start)
    pointers = np.frombuffer(index, "<i8", count, start + 4 * count)
    assert len(index) == start + 12 * count
    dtype = {8: "<u2", 4: "<i4"}[code]
    return [np.frombuffer(data, dtype, *at).tolist() for at in zip(sizes, pointers, strict=True)]


def test_bytes_of_a_small_dataset(tmp_path):
    dataset.write_texts(
        tmp_path / "x", [np.array([0, 7, 2], np.uint16), np.array([0, 2], np.uint16)], np.array([3, 2]), 9
    )
    assert (tmp_path / "x.bin").read_bytes() == bytes([7, 0, 2, 0, 2, 0])
    assert (tmp_path / "x.idx").read_bytes() == (
        b"MMIDIDX\x00\x00"
        b"\x01\x00\x00\x00\x00\x00\x00\x00"  # version 1
        b"\x08"  # uint16
        b"\x02\x00\x00\x00\x00\x00\x00\x00"  # two texts
        b"\x02\x00\x00\x00\x01\x00\x00\x00"  # of two tokens and of one
        b"\x00\x00\x00\x00\x00\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00"  # at bytes 0 and 4
    )


texts_of_ids = st.lists(st.lists(st.integers(3, 99), max_size=9), min_size=1, max_size=30)


@given(
    texts=texts_of_ids, cuts=st.sets(st.integers(1, 29)), vocab_size=st.sampled_from([100, 2**16, 2**16 + 1])
)
def test_all_texts_are_read_back_for_any_number_of_parts(tmp_path_factory, texts, cuts, vocab_size):
    stem, dtype = tmp_path_factory.mktemp("dataset") / "train", np.uint16 if vocab_size <= 2**16 else np.int32
    whole = [[0, *text, 2] for text in texts]
    edges = sorted({0, len(texts)} | {cut for cut in cuts if cut < len(texts)})
    parts = [np.array(list(itertools.chain(*whole[a:b])), dtype) for a, b in itertools.pairwise(edges)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dataset, "_CHUNK", 7)
        counts = dataset.write_texts(stem, parts, np.array([len(text) for text in whole]), vocab_size)
    assert opened(stem) == [[*text, 2] for text in texts]
    assert len(counts) == vocab_size
    written = [*itertools.chain(*texts), *[2] * len(texts)]
    assert counts.tolist()[:100] == np.bincount(written, minlength=100).tolist()


def test_memory_does_not_grow_with_the_part_size(tmp_path):
    part = np.lib.format.open_memmap(tmp_path / "ids.npy", "w+", np.uint16, (2**25,))
    part[:] = 5
    part[::16] = 0
    lengths = np.full(2**21, 16)
    tracemalloc.start()
    dataset.write_texts(tmp_path / "x", [part], lengths, 9)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 4 * peak < 2**25 < (tmp_path / "x.bin").stat().st_size


def command(monkeypatch, *arguments):
    monkeypatch.setattr("sys.argv", ["train.fairseq", *map(str, arguments)])
    return main()


def test_exports_a_run(run_folder, tmp_path, tokenizer, comments, monkeypatch):
    assert command(monkeypatch, "export-data", run_folder, tmp_path / "out") == 0
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        ".simllm", "dict.txt", "train.bin", "train.idx", "valid.bin", "valid.idx"
    ]  # fmt: skip
    expected = [tokenizer.truncate(ids, 64)[1:] for ids in tokenizer.encode(comments[:350])]
    train, valid = opened(tmp_path / "out" / "train"), opened(tmp_path / "out" / "valid")
    assert train + valid == expected
    assert len(valid) == 50
    lines = (tmp_path / "out" / "dict.txt").read_text().splitlines()
    assert lines[0] == "<mask> 0"
    symbols, counts = zip(*(line.split(" ") for line in lines), strict=True)
    assert symbols == tuple(tokenizer.backend.id_to_token(i) for i in range(4, 1000))
    assert [int(count) for count in counts] == np.bincount(np.concatenate(train), minlength=1000)[4:].tolist()
    assert dictionary.read_dictionary(tmp_path / "out" / "dict.txt") == tokenizer.backend.get_vocab()


@pytest.mark.parametrize(
    ("parts", "lengths", "message"),
    [
        ([[0, 9, 2]], [3], "token id 9, but the tokenizer has 9 tokens"),
        ([[0, 7, 2]], [3, 3], "1 texts begin and 2 have a length"),
        ([[0, 7, 2, 2]], [3], "damaged"),
        ([], [], "empty"),
    ],
)
def test_contradictory_inputs_are_errors(tmp_path, parts, lengths, message):
    with pytest.raises(InputError, match=message):
        dataset.write_texts(
            tmp_path / "x", [np.array(part, np.uint16) for part in parts], np.array(lengths, int), 9
        )


def test_folder_without_run_is_refused_and_nothing_is_written(run_folder, tmp_path, monkeypatch, capsys):
    def answer(*arguments):
        assert command(monkeypatch, "export-data", *arguments) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        return error

    assert "0 vocabularies; expected the folder of a pretraining run" in answer(
        tmp_path / "no", tmp_path / "out"
    )
    assert f"{tmp_path}: exists already" in answer(run_folder, tmp_path)
    (run_folder / "shards" / "test.txt").rename(tmp_path / "away")
    assert "test.txt: no such shards" in answer(run_folder, tmp_path / "out")
    assert not list(tmp_path.glob("out*"))
