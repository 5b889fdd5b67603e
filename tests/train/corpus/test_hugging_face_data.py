"""Data sets that are named as `hf:NAME` are streamed; nothing is downloaded unasked."""

import http.server
import json
import os
import subprocess
import sys
import threading
import tracemalloc

import datasets
import pyarrow
import pytest
from pyarrow import parquet

from simllm.errors import InputError
from simllm.perturb.summaries import lexicon
from tests.conftest import ROOT
from train.contrastive.batches import PositiveSource
from train.contrastive.config import PositivesConfig
from train.corpus import hugging_face_data, sources
from train.corpus.comments import Comment
from train.corpus.decontaminate import ExcludedTexts
from train.corpus.parts import Tally
from train.corpus.source_trees import Code
from train.corpus.sources import Docstring

pytestmark = pytest.mark.slow

LEXICON = lexicon.load()
TEXTS = ["adds two numbers", "opens the file", "closes the window"]


def write_parquet(folder, columns, name="train-00000-of-00001.parquet"):
    folder.mkdir(exist_ok=True)
    parquet.write_table(pyarrow.table(columns), folder / name)


def write_csv(folder):
    folder.mkdir()
    (folder / "data.csv").write_text("text,stars\n" + "".join(f"{text},1\n" for text in TEXTS))


def write_json(folder):
    folder.mkdir()
    (folder / "data.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))


def write_arrow(folder):
    datasets.Dataset.from_dict({"text": TEXTS}).save_to_disk(folder)


def write_arrow_with_splits(folder):
    parts = {"train": TEXTS, "test": ["not this one"]}
    datasets.DatasetDict(
        {name: datasets.Dataset.from_dict({"text": texts}) for name, texts in parts.items()}
    ).save_to_disk(folder)


def read(source):
    tally = Tally()
    return list(sources.read(source, 0, tally)), tally


@pytest.mark.parametrize(
    ("write", "has_splits"),
    [
        (lambda folder: write_parquet(folder, {"text": TEXTS}), True),
        (write_csv, True),
        (write_json, True),
        (write_arrow, False),
        (write_arrow_with_splits, True),
    ],
    ids=["parquet", "csv", "json", "arrow", "arrow with splits"],
)
def test_each_format_gives_the_same_comments(write, has_splits, tmp_path, monkeypatch):
    write(tmp_path / "csv")  # a name that `datasets` would take for a file format
    monkeypatch.chdir(tmp_path)
    for source in ("hf:csv#text", "hf:csv", *[f"hf:{tmp_path}/csv:train#text"] * has_splits):
        assert read(source)[0] == [Comment(text) for text in TEXTS]


def test_configurations_and_splits(tmp_path):
    for config in ("java", "python"):
        for split in ("train", "test"):
            folder = tmp_path / "set" / config
            folder.mkdir(parents=True, exist_ok=True)
            write_parquet(folder, {"text": [f"{config} {split}"]}, f"{split}-0.parquet")
    splits = {"train": "train-*", "test": "test-*"}
    lines = ["---", "configs:"]
    for config in ("java", "python"):
        lines += [f"- config_name: {config}", "  data_files:"]
        lines += [f"  - {{split: {split}, path: {config}/{pattern}}}" for split, pattern in splits.items()]
    (tmp_path / "set" / "README.md").write_text("\n".join([*lines, "---", ""]))
    source = f"hf:{tmp_path}/set"
    assert read(f"{source}:java#text")[0] == [Comment("java train")]
    assert read(f"{source}:python:test#text")[0] == [Comment("python test")]
    with pytest.raises(InputError, match="expected one of the splits train, test"):
        read(f"{source}:python:dev#text")
    with pytest.raises(InputError, match="cannot be opened"):
        read(f"{source}:ruby:train#text")


def test_a_single_part_is_a_split_if_no_configuration_has_its_name(tmp_path):
    write_parquet(tmp_path / "set", {"text": ["in train"]}, "train-0.parquet")
    write_parquet(tmp_path / "set", {"text": ["in test"]}, "test-0.parquet")
    assert read(f"hf:{tmp_path}/set:test#text")[0] == [Comment("in test")]
    assert read(f"hf:{tmp_path}/set::test#text")[0] == [Comment("in test")]
    assert read(f"hf:{tmp_path}/set#text")[0] == [Comment("in train")]


def documented(text):
    return f'def total(a):\n    """{text}"""\n    return sum(a)\n'


def test_code_in_the_layout_of_the_stack(tmp_path):
    first, second = documented("Adds all numbers of a list."), documented("Opens the file for reading.")
    write_parquet(
        tmp_path / "stack",
        {
            "content": [first, "text", second, "x" * (1 << 21)],
            "max_stars_repo_path": ["src/total.py", "README.md", "b.py", "c.py"],
            "max_stars_repo_name": ["one/two", "one/two", None, "one/two"],
            "max_stars_repo_licenses": [["MIT", "Apache-2.0"], ["MIT"], [], ["MIT"]],
        },
    )
    found, tally = read(f"hf:{tmp_path}/stack")
    assert found == [
        Code(first.encode(), "python", "src/total.py", "one/two", "MIT, Apache-2.0"),
        Code(second.encode(), "python", "b.py", "", ""),
    ]
    assert tally.counts == {"file too large": 1}


def test_a_corpus_is_built_from_code_in_parquet(tmp_path, command):
    codes = [documented(f"Counts the values of kind {n} in the list.") for n in range(20)]
    columns = {"content": codes, "path": [f"{n}.py" for n in range(20)], "license": ["MIT"] * 20}
    write_parquet(tmp_path / "stack", columns)
    done = command("build", f"hf:{tmp_path}/stack", "--out", tmp_path / "corpus", "--test-share", "0.5")
    assert done.returncode == 0, done.stderr
    comments = [json.loads(line) for line in (tmp_path / "corpus" / "comments.jsonl").open()]
    assert len(comments) == 20
    assert comments[3]["summary"] == "Counts the values of kind 3 in the list."
    assert comments[3]["licence"] == "MIT"


def test_docstrings_as_in_codesearchnet(tmp_path):
    write_parquet(
        tmp_path / "set",
        {"docstring": ["Adds two.", None], "language": ["python", "java"], "func_name": ["add", "f"]},
    )
    found, tally = read(f"hf:{tmp_path}/set")
    assert found == [Docstring("Adds two.", "python", "add", "", "")]
    assert tally.counts == {"row without a text": 1}


def test_rows_without_a_text_are_counted(tmp_path):
    write_parquet(tmp_path / "set", {"text": ["adds two", None]})
    found, tally = read(f"hf:{tmp_path}/set#text")
    assert (found, tally.counts) == ([Comment("adds two")], {"row without a text": 1})


def test_code_without_content_is_counted(tmp_path):
    write_parquet(tmp_path / "set", {"content": [documented("Adds two."), None], "path": ["a.py", "b.py"]})
    found, tally = read(f"hf:{tmp_path}/set")
    assert [code.path for code in found] == ["a.py"]
    assert tally.counts == {"row without a text": 1}


def test_content_without_a_path_is_no_code(tmp_path):
    write_parquet(tmp_path / "set", {"content": ["adds two"]})
    with pytest.raises(InputError, match="has the columns content; name one"):
        read(f"hf:{tmp_path}/set")


@pytest.mark.parametrize("empty", [0, 1])
def test_empty_files_are_skipped(empty, tmp_path):
    texts = [TEXTS, TEXTS]
    texts[empty] = pyarrow.array([], pyarrow.string())
    for number, column in enumerate(texts):
        write_parquet(tmp_path / "set", {"text": column}, f"train-{number}.parquet")
    assert read(f"hf:{tmp_path}/set#text")[0] == [Comment(text) for text in TEXTS]


@pytest.mark.parametrize(
    ("column", "message"),
    [("words", "no column 'words'"), ("text", "row 3001: cannot be read (Couldn't cast other: string to")],
)
def test_error_in_the_middle_of_a_data_set_is_one_line(column, message, tmp_path, command):
    """pyarrow must not crash at the end of the process, and `datasets` must not add lines to the error."""
    texts = pyarrow.table({"text": [f"adds the number {n}" for n in range(3000)]})
    (tmp_path / "set").mkdir()
    parquet.write_table(texts, tmp_path / "set" / "train-0.parquet", row_group_size=500)
    write_parquet(tmp_path / "set", {"other": ["adds two"]}, "train-1.parquet")
    done = command("build", f"hf:{tmp_path}/set#{column}", "--out", tmp_path / "corpus")
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_pairs_come_from_data_sets_too(tmp_path):
    write_parquet(tmp_path / "set", {"a": ["adds two", "opens it"], "b": ["sums two", "opens a file"]})
    config = PositivesConfig(source=f"hf:{tmp_path}/set", share=1.0, fields=("a", "b"), max_overlap=1.0)
    pairs = PositiveSource(config, ExcludedTexts(()), LEXICON).pairs
    assert [(pair.first, pair.second) for pair in pairs] == [
        ("adds two", "sums two"),
        ("opens it", "opens a file"),
    ]
    assert sources.input_files(config.source) == [tmp_path / "set" / "train-00000-of-00001.parquet"]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("hf:", "expected hf:NAME"),
        ("hf:missing/set#text", "no such folder; --allow-download reads missing/set from the hub"),
        ("hf:set#words", "no column 'words'; expected one of a, b"),
        ("hf:set", "has the columns a, b; name one: hf:set#COLUMN"),
        ("hf:set:dev#a", "expected one of the splits train"),
        ("hf:broken#a", "cannot be"),
        ("hf:empty#a", "cannot be opened"),
    ],
)
def test_bad_sources_give_one_line(source, message, tmp_path, monkeypatch):
    write_parquet(tmp_path / "set", {"a": ["adds two"], "b": ["sums two"]})
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "train.parquet").write_bytes(b"not parquet")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as error:
        read(source)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_files_are_expected_where_lines_are_read(tmp_path):
    with pytest.raises(InputError, match="expected a path"):
        sources.match_files("hf:set")


@pytest.fixture
def hub():
    """Run a server that replaces the hub and has no data sets; yield its address and the requests."""
    requests = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            requests.append(self.path)
            self.send_response(404)
            self.end_headers()

        def do_HEAD(self):
            self.do_GET()

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", requests
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("allowed", [False, True])
def test_nothing_is_downloaded_unless_it_is_allowed(allowed, hub, tmp_path):
    url, requests = hub
    words = ["build", "hf:nobody/nothing#text", "--out", str(tmp_path / "corpus")]
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "train.corpus", *words, *["--allow-download"] * allowed],
        env=environment | {"HF_ENDPOINT": url, "HF_HOME": str(tmp_path)},
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("error: source 'hf:nobody/nothing#text': ")
    assert done.stderr.count("\n") == 1
    assert bool(requests) == allowed


def test_memory_does_not_grow_with_the_data_set(tmp_path):
    peaks = []
    for name, count in (("small", 4_000), ("large", 40_000)):
        texts = pyarrow.table({"text": [f"adds the number {n} to the list" * 5 for n in range(count)]})
        (tmp_path / name).mkdir()
        parquet.write_table(texts, tmp_path / name / "train.parquet", row_group_size=1000)
        del texts
        source = hugging_face_data.parse_source(f"hf:{tmp_path}/{name}#text")
        tracemalloc.start()
        before, most, read_rows = pyarrow.total_allocated_bytes(), 0, 0
        for _ in hugging_face_data.rows(source):
            read_rows += 1
            most = max(most, pyarrow.total_allocated_bytes() - before)
        assert read_rows == count
        peaks.append(most + tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 2 * peaks[0]
