"""Long inputs: scored as they are read, interrupted, resumed."""

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import numpy as np
import pytest
from transformers import AutoModel

from simllm import InputError, SimLLM
from simllm.model import checkpoint
from simllm.scoring.encode import pad
from tests.command import run

PAIRS = 5000


@pytest.fixture(scope="module")
def many(comments, tmp_path_factory):
    """A file of pairs, each with an id."""
    file = tmp_path_factory.mktemp("many") / "pairs.jsonl"
    with file.open("w") as target:
        for i in range(PAIRS):
            row = {"key": f"k{i}", "candidate": f"{comments[i % 97]} {i}", "reference": comments[i % 109]}
            target.write(json.dumps(row) + "\n")
    return file


def interrupted(file, model_folder, *arguments, number=signal.SIGINT, **options):
    """Score all but the last pairs of a pipe, then press Ctrl-C, or send another signal."""
    command = [sys.executable, "-m", "simllm", "score", "--jsonl", "-", "--model", model_folder, *arguments]
    pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen([*map(str, command)], **pipes, **options)
    process.stdin.writelines(file.read_text().splitlines(keepends=True)[: PAIRS - 100])
    process.stdin.flush()
    target = Path(options["stdout"].name if options else f"{arguments[-1]}.partial")
    deadline = time.monotonic() + 120
    while not (target.exists() and target.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(number)
    _, errors = process.communicate(timeout=120)
    return process.returncode, errors


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_file_is_resumed(many, model_folder, tmp_path, number):
    out = tmp_path / "scores.tsv"
    status, errors = interrupted(many, model_folder, "--id-field", "key", "-o", out, number=number)
    assert status == 130
    assert not out.exists()
    done = int(re.search(r"--skip (\d+) goes on", errors)[1])
    lines = (tmp_path / "scores.tsv.partial").read_text().splitlines()
    assert len(lines) == done + 1
    assert lines[0] == "id\tscore\tcandidate\treference"
    with (tmp_path / "scores.tsv.partial").open("a") as partial:
        partial.write("k999\t0.")  # a row that a kill cut
    arguments = ("score", "--jsonl", many, "--id-field", "key", "-o", out, "--model", model_folder)
    assert run(*arguments, "--skip", done + 50).returncode == 2
    other = run(*(a for a in arguments if a not in ("--id-field", "key")), "--skip", done)
    assert (other.returncode, other.stdout) == (2, "")
    assert "scores.tsv.partial: has other columns than score candidate reference" in other.stderr
    assert run(*arguments, "--skip", done).returncode == 0
    rows = [line.split("\t")[:2] for line in out.read_text().splitlines()[1:]]
    assert [row[0] for row in rows] == [f"k{i}" for i in range(PAIRS)]
    pairs = [json.loads(line) for line in many.read_text().splitlines()]
    expected = SimLLM(model_folder).score(*([p[k] for p in pairs] for k in ("candidate", "reference")))
    assert np.abs(np.array([float(row[1]) for row in rows]) - expected.values).max() < 1e-5


@pytest.mark.slow
def test_interrupted_json_is_json(many, model_folder, tmp_path):
    with (tmp_path / "scores.json").open("w") as target:
        status, errors = interrupted(many, model_folder, "-f", "json", stdout=target)
    assert status == 130
    result = json.loads((tmp_path / "scores.json").read_text())
    assert result["interrupted"]
    assert 0 < len(result["rows"]) < PAIRS
    assert f"interrupted after {len(result['rows']):,} pairs" in errors


def test_a_stream_is_read_as_it_is_scored(model_folder):
    drawn = 0

    def pairs():
        nonlocal drawn
        for drawn in range(1, 10_001):
            yield "adds two", f"gets {drawn % 7}"

    parts = SimLLM(model_folder).stream(pairs())
    first = next(parts)
    assert len(first.values) * 3 >= drawn
    assert len(first.values) + sum(len(part.values) for part in parts) == 10_000


def test_standard_input_and_pipes(many, model_folder):
    head = "".join(many.read_text().splitlines(keepends=True)[:3])
    done = run("score", "--jsonl", "-", "--id-field", "key", "--model", model_folder, input=head)
    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == ["id", "k0", "k1", "k2"]
    done = run("score", "-c", "-", "-r", "/dev/null", "--model", model_folder, input="a\nb\n")
    assert (done.returncode, done.stdout) == (2, "")
    assert "/dev/null: empty" in done.stderr


@pytest.mark.slow
def test_a_terminal_sees_a_bar_with_the_time_left(many, model_folder, tmp_path):
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 90, 0, 0))
    command = [sys.executable, "-m", "simllm", "score", "--jsonl", many, "--model", model_folder]
    subprocess.run([*map(str, command)], stdout=subprocess.DEVNULL, stderr=slave, timeout=300, check=True)
    shown = os.read(master, 100_000).decode()
    assert re.search(r"\d+/5000 \[\d+:\d+<\d+:\d+, .*pairs/s\]", shown)


LONG = "returns the first value of the list " * 100


def test_long_texts_can_be_refused_or_read_in_windows(model_folder, tmp_path):
    (tmp_path / "c.txt").write_text(f"adds two\n{LONG}\n")
    (tmp_path / "r.txt").write_text("adds two\nadds two\n")
    files = ("score", "-c", tmp_path / "c.txt", "-r", tmp_path / "r.txt", "--model", model_folder)
    done = run(*files, "--on-long", "error")
    assert done.returncode == 2
    assert re.search(r"error: candidate 2: \d+ tokens, more than the model's 64\n", done.stderr)
    done = run(*files, "--on-long", "window", "-f", "json")
    assert "1 of 4 texts read in windows of 64 tokens" in done.stderr
    assert "|long:window|" in json.loads(done.stdout)["signature"]


@pytest.mark.filterwarnings("ignore:.*texts (read in windows|cut at)")
def test_a_windowed_text_is_the_mean_of_its_windows(model_folder):
    metric = SimLLM(model_folder, on_long="window")
    first, second = "adds two " * 200, "removes it " * 200
    windows = metric.tokenize([first + second]).inputs[0]
    assert {len(ids) for ids in windows[:-1]} == {64}
    states = [metric.engine(*pad([ids])).mean(1)[0].detach().numpy() for ids in windows]
    expected = np.average(states, axis=0, weights=[len(ids) - 2 for ids in windows])
    assert metric.embed([first + second])[0] == pytest.approx(expected, abs=1e-5)
    assert (
        np.abs(metric.embed([first + second]) - SimLLM(model_folder).embed(["adds two " * 200])).max() > 0.01
    )


def test_weights_in_shards_are_read(model_folder, tmp_path):
    AutoModel.from_pretrained(model_folder).save_pretrained(tmp_path / "m", max_shard_size="50KB")
    (tmp_path / "m" / "tokenizer.json").write_bytes((model_folder / "tokenizer.json").read_bytes())
    shards = sorted((tmp_path / "m").glob("model-*.safetensors"))
    assert len(shards) > 1
    texts = ["adds two numbers", "removes it"]
    assert np.abs(SimLLM(tmp_path / "m").embed(texts) - SimLLM(model_folder).embed(texts)).max() < 1e-6
    whole = checkpoint.load(tmp_path / "m").hash
    shards[-1].unlink()
    with pytest.raises(InputError, match=f"no {shards[-1].name}"):
        checkpoint.load(tmp_path / "m")
    assert whole != checkpoint.load(model_folder).hash


@pytest.mark.slow
def test_memory_does_not_grow_with_the_pairs(comments, tmp_path):
    """Of texts of every length, by the included model."""
    words = " ".join(comments).split()
    watched = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); "
    watched += "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"

    def megabytes(count):
        file = tmp_path / f"{count}.jsonl"
        with file.open("w") as out:
            for i in range(count):
                at = 7 * i % (len(words) - 100)
                texts = (" ".join(words[at + side : at + side + 3 + i % 60]) for side in (0, 1))
                out.write(json.dumps(dict(zip(("candidate", "reference"), texts, strict=True))) + "\n")
        command = ["simllm", "score", "--jsonl", file, "-o", tmp_path / "scores.tsv", "--overwrite", "-q"]
        done = subprocess.run(
            [sys.executable, "-c", watched, sys.executable, "-m", *map(str, command)],
            capture_output=True, text=True, timeout=300, check=True,
            env={name: value for name, value in os.environ.items() if not name.endswith("_CACHE_CAPACITY")},
        )  # fmt: skip
        return int(done.stdout) / 1000

    assert megabytes(6000) - megabytes(300) < 105


@pytest.fixture(scope="module")
def scored(many, tmp_path_factory):
    """The file of the first 30 pairs, and the table of their scores."""
    folder = tmp_path_factory.mktemp("scored")
    short = folder / "short.jsonl"
    short.write_text("".join(many.read_text().splitlines(keepends=True)[:30]))
    assert run("score", "--jsonl", short, "--id-field", "key", "-o", folder / "scores.tsv").returncode == 0
    assert sorted(path.name for path in folder.iterdir()) == ["scores.tsv", "short.jsonl"]
    return short, (folder / "scores.tsv").read_text(), SimLLM().signature


@pytest.fixture
def begun(scored, tmp_path):
    """The command that resumes a table of 20 rows of 30, the partial table, and the whole table."""
    short, whole, signature = scored
    command = ["score", "--jsonl", short, "--id-field", "key", "-o", tmp_path / "scores.tsv"]
    partial = tmp_path / "scores.tsv.partial"
    partial.write_text("".join(whole.splitlines(keepends=True)[:21]))
    measure = {"scale": "raw", "signature": signature}
    partial.with_name("scores.tsv.partial.json").write_text(json.dumps(measure))
    return command, partial, whole


def test_a_resumed_table_has_the_mean_of_all_rows(begun):
    command, partial, whole = begun
    with partial.open("a") as rows:
        rows.write("k20\t0.")  # cut by a kill
    done = run(*command, "--skip", 20)
    assert done.returncode == 0, done.stderr
    assert partial.with_suffix("").read_text() == whole
    mean = np.mean([float(row.split("\t")[1]) for row in whole.splitlines()[1:]])
    assert f"simllm: 30 pairs, mean raw score {mean:.4f}, model:" in done.stderr
    assert list(partial.parent.glob("*.partial*")) == []


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            ["--mode", "fast"],
            r"begun with the signature \S+, not \S+dtype:bfloat16\S+; use the options .*",
        ),
        (["--pooling", "cls"], "begun with the signature .*"),
        (["--on-long", "window"], "begun with the signature .*"),
        (["--scale", "percentile"], "begun with the scale raw, not percentile; .*"),
        (["--jsonl", "another"], "has 'k4' where the input has 'k34'; use the input .*"),
        (["--id-field", "reference"], "has 'k4' where the input has '.*"),
        (["--skip", "19"], "holds 20 pairs, not the 19 to be skipped; --skip 20 goes on after them"),
        (["--skip", "21"], "holds 20 pairs, not the 21 to be skipped"),
        (["--mode", "fsat"], "mode 'fsat': expected one of .*"),
    ],
)
def test_another_measure_or_file_is_not_mixed_in(begun, many, other, message, tmp_path):
    command, partial, _ = begun
    before = partial.read_bytes()
    (tmp_path / "another").write_text("".join(many.read_text().splitlines(keepends=True)[30:70]))
    other = [tmp_path / word if word == "another" else word for word in other]
    done = run(*command, "--skip", 20, *other)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(rf"simllm: error: (.*scores\.tsv\.partial: )?{message}\n", done.stderr), done.stderr
    assert partial.read_bytes() == before


@pytest.mark.parametrize(
    ("left", "format_", "remedy"),
    [
        (None, "tsv", "--skip 20 goes on after them; else remove it"),
        (None, "json", "remove it to start anew"),
        ('{"rows": [\n{}\n]}\n', "tsv", "remove it to start anew"),
    ],
)
def test_rows_of_an_earlier_run_are_not_lost(begun, left, format_, remedy):
    command, partial, _ = begun
    partial.write_text(left or partial.read_text())
    before = partial.read_bytes()
    done = run(*command, "-f", format_)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"simllm: error: {partial}: has rows of an earlier run; {remedy}\n"
    assert partial.read_bytes() == before


@pytest.mark.parametrize(
    ("old", "new"), [("\t0.", "\tnothing "), ("k3\t", "k3\tand\t"), ("k5\t", "\udc80\t")]
)
def test_a_damaged_row_is_named(begun, old, new):
    command, partial, _ = begun
    damaged = partial.read_text().replace(old, new, 1).encode(errors="surrogateescape")
    partial.write_bytes(damaged)
    done = run(*command, "--skip", 20)
    assert done.returncode == 2
    assert re.search(r"partial, line \d: not a row of scores\n", done.stderr)
    assert partial.read_bytes() == damaged


def test_the_input_is_not_taken_for_what_is_unfinished(many, tmp_path):
    many.rename(tmp_path / "scores.tsv.partial")
    done = run("score", "--jsonl", tmp_path / "scores.tsv.partial", "-o", tmp_path / "scores.tsv")
    assert done.returncode == 2
    assert "would overwrite what is read" in done.stderr
