import gzip
import json

import pytest

from simllm.errors import InputError
from train.config import CorpusConfig
from train.corpus import build, sources


def lines(folder, name):
    return (folder / name).read_text().splitlines()


def test_a_real_corpus_is_cleaned_deduplicated_and_split(corpus_file, comments, tmp_path):
    config = CorpusConfig(sources=(str(corpus_file),))
    built = build.build(config, tmp_path / "corpus")
    train, test = lines(tmp_path / "corpus", "train.txt"), lines(tmp_path / "corpus", "test.txt")
    counts = built["counts"]
    assert counts["read"] == len(comments) == sum(counts.values()) - counts["read"]
    assert (counts["train"], counts["test"]) == (len(train), len(test))
    assert 0.07 < len(test) / (len(train) + len(test)) < 0.13
    assert len({*train, *test}) == len(train) + len(test)
    assert counts["duplicate"] > 0


def test_the_split_depends_on_the_text_alone(tmp_path):
    texts = [f"adds {word} to the list" for word in map(str, range(300))]
    (tmp_path / "a.txt").write_text("\n".join(texts))
    (tmp_path / "b.txt").write_text("\n".join(reversed(texts)))
    for name in ("a", "b"):
        build.build(CorpusConfig(sources=(str(tmp_path / f"{name}.txt"),)), tmp_path / name)
    assert set(lines(tmp_path / "a", "test.txt")) == set(lines(tmp_path / "b", "test.txt"))


def test_what_is_dropped_is_counted(tmp_path):
    rows = ["adds two lists", "Adds two lists.", "adds", "12 34", "gets the rated name", "sets the key"]
    rows += [f"gets the {word} name" for word in ("first", "last", "full", "short", "long", "other", "user")]
    with gzip.open(tmp_path / "texts.jsonl.gz", "wt") as file:
        file.writelines(json.dumps({"text": row, "language": "java"}) + "\n" for row in rows)
    rated = {
        "reference": "Gets the RATED name",
        "candidate": "x",
        "candidate_clean": "sets the key.",
        "rating": 1,
    }
    (tmp_path / "rated.jsonl").write_text(json.dumps(rated))
    config = CorpusConfig((str(tmp_path / "texts.jsonl.gz"),), (str(tmp_path / "rated.jsonl"),), 0.4)
    counts = build.build(config, tmp_path / "corpus")["counts"]
    assert counts["duplicate"] == 1
    assert counts["fewer than two words"] == 2
    assert counts["in a rated set"] == 2
    assert counts["train"] + counts["test"] == 8


def test_a_rated_file_without_the_expected_texts_is_named(corpus_file, tmp_path):
    (tmp_path / "rated.jsonl").write_text('{"ref": "a b", "hyp": "a c"}')
    config = CorpusConfig((str(corpus_file),), (str(tmp_path / "rated.jsonl"),))
    with pytest.raises(InputError, match=r'rated\.jsonl, line 1: expected a text under "reference"'):
        build.build(config, tmp_path / "corpus")


def test_a_corpus_is_built_once_a_configuration(corpus_file, tmp_path):
    config = CorpusConfig(sources=(str(corpus_file),))
    first = build.build(config, tmp_path / "corpus")
    stamp = (tmp_path / "corpus" / "train.txt").stat().st_mtime_ns
    assert build.build(config, tmp_path / "corpus") == first
    assert (tmp_path / "corpus" / "train.txt").stat().st_mtime_ns == stamp
    other = build.build(CorpusConfig(config.sources, test_share=0.3), tmp_path / "corpus")
    assert other["counts"]["test"] > first["counts"]["test"]


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.jsonl", b'{"text": "adds two"}\n{"text": 1}\n', 'line 2: expected a text under "text"'),
        ("a.jsonl", b'{"text": "adds two"}\n{\n', "line 2: not JSON"),
        ("a.jsonl", b"[]\n", "line 1: expected a JSON object"),
        ("a.txt", b"adds two\n\xff\n", "not UTF-8"),
        ("a.txt.gz", b"not gzipped", "cannot be read"),
        ("a.txt.gz", gzip.compress(b"adds two\n" * 9999)[:60], "ends in the middle, after line"),
        ("a.txt", b"", "too few texts"),
    ],
)
def test_bad_sources_are_named(tmp_path, name, data, message):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError, match=message) as error:
        build.build(CorpusConfig((str(tmp_path / name),)), tmp_path / "corpus")
    assert name in str(error.value)
    assert not (tmp_path / "corpus").exists()


def test_a_missing_source_is_named():
    with pytest.raises(InputError, match=r"source 'none/\*\.txt': no such file"):
        list(sources.read("none/*.txt"))
