"""Scoring of many files of pairs, on this machine or on a Ray cluster.

Each file of pairs gets its own table of scores. A run that stops early leaves no incomplete table.
"""

import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from simllm import SimLLM
from simllm.analysis import sharded_scoring
from simllm.analysis.sharded_scoring import ShardSettings, score_here, score_shards
from simllm.errors import InputError
from tests import command


def write_pairs(file, count, first=0):
    rows = (
        {"id": n, "candidate": f"adds the number {n}", "reference": f"subtracts {n % 7} from it"}
        for n in range(first, first + count)
    )
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    file.write_bytes(gzip.compress(data) if file.suffix == ".gz" else data)
    return file


@pytest.fixture
def shards(tmp_path):
    (tmp_path / "in").mkdir()
    return [write_pairs(tmp_path / "in" / f"s{n}.jsonl.gz", 5 + n, 100 * n) for n in range(4)]


def test_each_table_equals_that_of_the_file_alone(shards, tmp_path):
    done = command.run(
        "score", "--jsonl", tmp_path / "in" / "*.jsonl.gz", "--id-field", "id", "-o", tmp_path / "out"
    )
    assert done.returncode == 0, done.stderr
    assert [line.split("\t")[:2] for line in done.stdout.splitlines()[1:]] == [
        [f"s{n}.tsv", str(5 + n)] for n in range(4)
    ]
    alone = command.run(
        "score", "--jsonl", shards[2], "--id-field", "id", "-f", "tsv", "-o", tmp_path / "alone.tsv"
    )
    assert alone.returncode == 0, alone.stderr
    assert (tmp_path / "out" / "s2.tsv").read_bytes() == (tmp_path / "alone.tsv").read_bytes()
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert {name: row["pairs"] for name, row in summary["tables"].items()} == {
        f"s{n}.tsv": 5 + n for n in range(4)
    }


def test_complete_tables_are_not_scored_again(shards, tmp_path, model_folder):
    scored = []

    def engine(settings, missing):
        for shard, summary in score_here(settings, missing):
            scored.append(shard.source.name)
            yield shard, summary
            if len(scored) == 2:
                raise InputError("stopped")

    out = tmp_path / "out"
    with pytest.raises(InputError, match="stopped"):
        score_shards(shards, out, ShardSettings(model=str(model_folder)), engine)
    (out / ".s3.tsv.1a2b3c4d.partial").write_text("left by a killed process")
    (out / "notes.txt").write_text("mine")
    score_shards(shards, out, ShardSettings(model=str(model_folder)), engine)
    assert scored == ["s0.jsonl.gz", "s1.jsonl.gz", "s2.jsonl.gz", "s3.jsonl.gz"]
    assert sorted(path.name for path in out.iterdir()) == [
        ".simllm", "notes.txt", "s0.tsv", "s1.tsv", "s2.tsv", "s3.tsv", "summary.json",
    ]  # fmt: skip
    (out / "s1.tsv").unlink()
    score_shards(shards, out, ShardSettings(model=str(model_folder)), engine)
    assert scored[4:] == ["s1.jsonl.gz"]


def test_the_pattern_may_match_the_output_folder(shards, tmp_path, monkeypatch, model_folder):
    monkeypatch.chdir(tmp_path / "in")
    for _ in range(2):
        done = command.run("score", "--model", model_folder, "--jsonl", "*", "-o", "scores")
        assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in (tmp_path / "in" / "scores").glob("*.tsv")) == [
        f"s{n}.tsv" for n in range(4)
    ]


def test_a_wrong_file_stops_the_run_and_keeps_complete_tables(shards, tmp_path, model_folder):
    shards[2].write_bytes(gzip.compress(b'{"candidate": "adds"}\n'))
    done = command.run(
        "score", "--model", model_folder, "--jsonl", tmp_path / "in" / "*", "-o", tmp_path / "out"
    )
    assert done.returncode == 2
    assert (
        done.stderr
        == f'simllm: error: {shards[2]}, line 1: expected a text under "reference"; it has candidate\n'
    )
    assert sorted(path.name for path in (tmp_path / "out").glob("*.tsv")) == ["s0.tsv", "s1.tsv"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "expected -o FOLDER"),
        (("-o", "out", "-f", "text"), "--format text: several files give tsv or json"),
        (("-o", "out", "--metrics", "bleu"), "--metrics does not go with several files"),
        (("-o", "out", "--resume"), "--resume does not go with several files"),
        (("-o", "out", "--actors", "0", "--engine", "ray"), "--actors 0: expected a whole number from 1"),
        (("-o", "out", "--actors", "2"), "--actors goes with --engine ray"),
        (("-o", "out", "--similarity", "f1"), "token-level similarities of several files need --frequencies"),
        (("-o", "out", "--scale", "stars"), "argument --scale: invalid choice: 'stars'"),
        (("-o", "out", "--frequencies", "table.json"), "frequencies go with a similarity of precision"),
        (("-o", "out", "--measure", "same", "--scale", "percentile"), "it goes without --scale"),
        (("-o", "in"), "is the source"),
        (("-o", "mine"), "mine: "),
    ],
)
def test_bad_options_give_one_line(words, message, shards, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("mine")
    (tmp_path / "table.json").write_text('{"documents": 1, "of": {}}')
    done = command.run("score", "--jsonl", "in/*.jsonl.gz", *words)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert (tmp_path / "mine" / "thesis.tex").read_text() == "mine"


def test_files_with_one_name_and_other_settings_are_refused(shards, tmp_path, model_folder):
    (tmp_path / "more").mkdir()
    twin = shutil.copy(shards[0], tmp_path / "more" / "s0.jsonl.gz")
    with pytest.raises(InputError, match="both would be written to"):
        score_shards([shards[0], tmp_path / twin], tmp_path / "out", ShardSettings(model=str(model_folder)))
    score_shards(shards[:1], tmp_path / "out", ShardSettings(model=str(model_folder)))
    with pytest.raises(InputError, match=r"holds scores with other settings \(mode\)"):
        score_shards(shards, tmp_path / "out", ShardSettings(model=str(model_folder), mode="fast"))
    summary = tmp_path / "out" / "summary.json"
    summary.write_text(summary.read_text().replace(SimLLM(model_folder).signature, "model:another"))
    for sources in (shards, shards[:1]):  # with further files to score, and without
        with pytest.raises(InputError, match="was scored by another model"):
            score_shards(sources, tmp_path / "out", ShardSettings(model=str(model_folder)))
    whole = json.loads(summary.read_text())
    (row,) = whole["tables"].values()
    rows = ["x", row | {"pairs": 0}, *(row | {key: None} for key in ("source", "pairs", "mean", "warnings"))]
    for damage in ({"settings": 1}, {"tables": [1]}, *({"tables": {"s0.tsv": wrong}} for wrong in rows)):
        summary.write_text(json.dumps(whole | damage))
        with pytest.raises(InputError, match="is damaged"):
            score_shards(shards, tmp_path / "out", ShardSettings(model=str(model_folder)))
    summary.write_text("{")
    with pytest.raises(InputError, match="not JSON"):
        score_shards(shards, tmp_path / "out", ShardSettings(model=str(model_folder)))


def test_other_input_files_of_the_same_names_are_refused(shards, tmp_path, model_folder):
    (tmp_path / "more").mkdir()
    twin = write_pairs(tmp_path / "more" / "s1.jsonl.gz", 3)
    words = ("score", "--model", model_folder, "-o", "out", "-q", "--jsonl")
    assert command.run(*words, "in/*", cwd=tmp_path).returncode == 0
    table = (tmp_path / "out" / "s1.tsv").read_bytes()
    done = command.run(*words, "more/*", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    message = "out: holds the scores of in/s1.jsonl.gz; name another folder"
    assert done.stderr == f"simllm: error: {message}\n"
    (tmp_path / "out" / "s1.tsv").unlink()
    with pytest.raises(InputError, match="holds the scores of in/s1"):
        score_shards([twin], tmp_path / "out", ShardSettings(model=str(model_folder)))
    assert command.run(*words, "in/*", cwd=tmp_path).returncode == 0
    assert (tmp_path / "out" / "s1.tsv").read_bytes() == table


def test_files_that_changed_are_scored_again(shards, tmp_path, model_folder):
    words = ("score", "--model", model_folder, "-o", "out", "-f", "json", "--jsonl", "in/*")
    assert command.run(*words, cwd=tmp_path).returncode == 0
    tables = {n: (tmp_path / "out" / f"s{n}.json").stat().st_ino for n in range(4)}
    size = shards[1].stat().st_size
    write_pairs(shards[1], 6, 200)
    assert shards[1].stat().st_size == size  # only the content differs
    os.utime(shards[2])
    done = command.run(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    warning = "simllm: warning: 1 file changed and will be scored again: in/s1.jsonl.gz"
    assert done.stderr.splitlines()[0] == warning
    again = [n for n in range(4) if (tmp_path / "out" / f"s{n}.json").stat().st_ino != tables[n]]
    assert again == [1]
    table = json.loads((tmp_path / "out" / "s1.json").read_text())
    assert table["rows"][0]["candidate"] == "adds the number 200"
    for n in range(4):
        write_pairs(shards[n], 2)
    done = command.run(*words, cwd=tmp_path)
    names = "in/s0.jsonl.gz, in/s1.jsonl.gz, in/s2.jsonl.gz, …"
    assert f"warning: 4 files changed and will be scored again: {names}\n" in done.stderr
    assert [line.split("\t")[1] for line in done.stdout.splitlines()[1:]] == ["2"] * 4
    assert "changed" not in command.run(*words, cwd=tmp_path).stderr


def test_a_file_that_changes_while_it_is_scored_is_scored_again(shards, tmp_path, model_folder):
    scored = []

    def engine(settings, missing):
        for shard, summary in score_here(settings, missing):
            scored.append(shard.source.name)
            if len(scored) == 1:
                write_pairs(shards[0], 1)
            yield shard, summary

    score_shards(shards[:1], tmp_path / "out", ShardSettings(model=str(model_folder)), engine)
    with pytest.warns(UserWarning, match="1 file changed and will be scored again"):
        found = score_shards(shards[:1], tmp_path / "out", ShardSettings(model=str(model_folder)), engine)
    assert scored == ["s0.jsonl.gz"] * 2
    assert found["tables"]["s0.tsv"]["pairs"] == 1


def test_ray_is_an_extra(shards, tmp_path, monkeypatch):
    from simllm.analysis.sharded_scoring import RayScoring

    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"in a checkout of simllm, run pip install '\.\[ray\]'"):
        score_shards(shards, tmp_path / "out", ShardSettings(), RayScoring())


@pytest.mark.slow
def test_a_ray_cluster_gives_the_same_tables_though_a_node_is_lost(ray_cluster, model_folder, tmp_path):
    from simllm.analysis.sharded_scoring import RayScoring

    (tmp_path / "in").mkdir()
    shards = [write_pairs(tmp_path / "in" / f"s{n}.jsonl", 900, 900 * n) for n in range(6)]
    settings = ShardSettings(model=str(model_folder), id_field="id")
    score_shards(shards, tmp_path / "here", settings)
    lost = []

    def lose_a_node(done, total):
        if done == 2 and not lost:
            lost.append(next(iter(ray_cluster.worker_nodes)))
            ray_cluster.remove_node(lost[0], allow_graceful=False)

    found = score_shards(shards, tmp_path / "ray", settings, RayScoring(ray_cluster.address), lose_a_node)
    assert lost
    assert len(found["tables"]) == 6
    for shard in shards:
        name = f"{shard.stem}.tsv"
        assert (tmp_path / "ray" / name).read_bytes() == (tmp_path / "here" / name).read_bytes()


@pytest.mark.slow
def test_a_wrong_file_on_ray_is_one_line(ray_cluster, shards, tmp_path):
    """One node is enough: the other one was lost in the test above."""
    shards[1].write_bytes(gzip.compress(b"[]\n"))
    done = command.run(
        "score", "--jsonl", tmp_path / "in" / "*", "-o", tmp_path / "out",
        "--engine", "ray", "--address", ray_cluster.address,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert done.stderr.endswith(
        f"simllm: error: {shards[1]}, line 1: is a JSON array; expected one object on each line\n"
    )
    done = command.run(
        "score", "--jsonl", tmp_path / "in" / "*", "-o", tmp_path / "out2",
        "--engine", "ray", "--address", "127.0.0.1:1",
    )  # fmt: skip
    assert done.returncode == 2
    assert "no Ray cluster" in done.stderr


@pytest.mark.slow
def test_a_killed_run_goes_on(model_folder, tmp_path):
    (tmp_path / "in").mkdir()
    shards = [write_pairs(tmp_path / "in" / f"s{n}.jsonl", 300, 300 * n) for n in range(8)]
    score_shards(shards, tmp_path / "whole", ShardSettings(model=str(model_folder)))
    words = [sys.executable, "-m", "simllm", "score", "--model", str(model_folder)]
    words += ["--jsonl", "in/*.jsonl", "-o", "out"]
    for tables in (1, 3, 6):
        process = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.DEVNULL, env=os.environ)
        while process.poll() is None and len(list((tmp_path / "out").glob("*.tsv"))) < tables:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
    subprocess.run(words, cwd=tmp_path, stdout=subprocess.DEVNULL, check=True)
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == sorted([".simllm", sharded_scoring.SUMMARY, *(f"s{n}.tsv" for n in range(8))])
    for n in range(8):
        assert (tmp_path / "out" / f"s{n}.tsv").read_bytes() == (
            tmp_path / "whole" / f"s{n}.tsv"
        ).read_bytes()
