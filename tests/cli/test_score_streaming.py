"""Scoring of long inputs: streaming, interruption and resume."""

import fcntl
import json
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from unittest import mock

import numpy as np
import pytest
from transformers import AutoModel

from simllm import InputError, SimLLM
from simllm.io.output_file import locked
from simllm.io.partial_file import PartialFile
from simllm.model import saved_model
from simllm.model.torch_engine import has_fast_bfloat16, pad
from tests.command import run

PAIRS = 5000


@pytest.fixture(scope="module")
def write_pairs(comments, tmp_path_factory):
    """Write a file of pairs with ids."""
    file = tmp_path_factory.mktemp("many") / "pairs.jsonl"
    with file.open("w") as target:
        for i in range(PAIRS):
            row = {"key": f"k{i}", "candidate": f"{comments[i % 97]} {i}", "reference": comments[i % 109]}
            target.write(json.dumps(row) + "\n")
    return file


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_killed_run_is_resumed_to_the_same_bytes(write_pairs, model_folder, tmp_path, number):
    lines = write_pairs.read_text().splitlines(keepends=True)
    options = ("score", "--jsonl", "-", "--id-field", "key", "--model", model_folder, "-o")
    whole = tmp_path / "whole.tsv"
    assert run(*options, whole, input="".join(lines)).returncode == 0
    out, partial = tmp_path / "scores.tsv", tmp_path / "scores.tsv.partial"
    command = [sys.executable, "-m", "simllm", *map(str, options), str(out)]
    running = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    running.stdin.writelines(lines[:-100])
    running.stdin.flush()
    deadline = time.monotonic() + 120
    while not partial.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    running.send_signal(number)
    _, errors = running.communicate(timeout=120)
    assert not out.exists()
    if number == signal.SIGINT:
        assert running.returncode == 130
        assert re.fullmatch(
            r"simllm: interrupted after [1-4],\d{3} pairs; --resume continues from there\n", errors
        )
    resumed = run(*options, out, "--resume", input="".join(lines))
    assert resumed.returncode == 0, resumed.stderr
    assert out.read_bytes() == whole.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["scores.tsv", "whole.tsv"]


def test_stream_is_scored_while_it_is_read(model_folder):
    drawn = 0

    def pairs():
        nonlocal drawn
        for drawn in range(1, 10_001):
            yield "adds two", f"gets {drawn % 7}"

    chunks = SimLLM(model_folder).stream(pairs())
    first, scores = next(chunks)
    assert len(first) == len(scores.values)
    assert len(first) * 3 >= drawn
    assert first[:2] == [("adds two", "gets 1"), ("adds two", "gets 2")]
    assert len(first) + sum(len(scores.values) for _, scores in chunks) == 10_000


def test_standard_input_and_pipes(write_pairs, model_folder):
    head = "".join(write_pairs.read_text().splitlines(keepends=True)[:3])
    done = run("score", "--jsonl", "-", "--id-field", "key", "--model", model_folder, input=head)
    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == ["id", "k0", "k1", "k2"]
    done = run("score", "-c", "-", "-r", "/dev/null", "--model", model_folder, input="a\nb\n")
    assert (done.returncode, done.stdout) == (2, "")
    assert "/dev/null: empty" in done.stderr


@pytest.mark.slow
def test_progress_bar_shows_the_remaining_time(write_pairs, model_folder, tmp_path):
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 90, 0, 0))
    command = [sys.executable, "-m", "simllm", "score", "--jsonl", write_pairs, "--model", model_folder]
    subprocess.run([*map(str, command)], stdout=subprocess.DEVNULL, stderr=slave, timeout=300, check=True)
    shown = os.read(master, 100_000).decode()
    assert re.search(r"\d+/5000 \[\d+:\d+<\d+:\d+, .*pairs/s\]", shown)


LONG = "returns the first value of the list " * 100


def test_on_long_error_and_windows(model_folder, tmp_path):
    (tmp_path / "c.txt").write_text(f"adds two\n{LONG}\n")
    (tmp_path / "r.txt").write_text("adds two\nadds two\n")
    files = ("score", "-c", tmp_path / "c.txt", "-r", tmp_path / "r.txt", "--model", model_folder)
    done = run(*files, "--on-long", "error")
    assert done.returncode == 2
    assert re.search(r"error: candidate 2: \d+ tokens, more than the model's 64\n", done.stderr)
    done = run(*files, "--on-long", "window", "-f", "json")
    assert "1 of 4 texts read in windows of 64 tokens" in done.stderr
    assert "|long:sentences-window|" in json.loads(done.stdout)["signature"]


@pytest.mark.filterwarnings("ignore:.*texts (read in windows|cut at)")
def test_windowed_embedding_is_the_mean_of_the_windows(model_folder):
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


def test_sharded_weights_are_read(model_folder, tmp_path):
    AutoModel.from_pretrained(model_folder).save_pretrained(tmp_path / "m", max_shard_size="50KB")
    (tmp_path / "m" / "tokenizer.json").write_bytes((model_folder / "tokenizer.json").read_bytes())
    shards = sorted((tmp_path / "m").glob("model-*.safetensors"))
    assert len(shards) > 1
    texts = ["adds two numbers", "removes it"]
    assert np.abs(SimLLM(tmp_path / "m").embed(texts) - SimLLM(model_folder).embed(texts)).max() < 1e-6
    whole = saved_model.load(tmp_path / "m").hash
    shards[-1].unlink()
    with pytest.raises(InputError, match=f"no {shards[-1].name}"):
        saved_model.load(tmp_path / "m")
    assert whole != saved_model.load(model_folder).hash


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_pairs(comments, head_folder, tmp_path):
    """The peak memory for 7,500 pairs of many lengths is hardly larger than that for 1,500 pairs."""
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
        command = ["simllm", "score", "--model", head_folder, "--jsonl", file]
        command += ["-o", tmp_path / "scores.tsv", "--overwrite", "-q"]
        done = subprocess.run(
            [sys.executable, "-c", watched, sys.executable, "-m", *map(str, command)],
            capture_output=True, text=True, timeout=300, check=True,
            env={name: value for name, value in os.environ.items() if not name.endswith("_CACHE_CAPACITY")},
        )  # fmt: skip
        return int(done.stdout) / 1000

    # Before 1,500 pairs, the peak still depends on which lengths of texts came together.
    # The states of all tokens of 6,000 pairs would be about 70 megabytes.
    assert megabytes(7500) - megabytes(1500) < 30


class StoppedError(Exception):
    """Exception that stops a run, as a kill does."""


@pytest.fixture
def stopped_run(write_pairs, model_folder, tmp_path, monkeypatch):
    """Return the command and the partial file of a run over 30 pairs, stopped after two chunks of 8 pairs."""
    short = tmp_path / "short.jsonl"
    short.write_text("".join(write_pairs.read_text().splitlines(keepends=True)[:30]))
    command = ["score", "--jsonl", short, "--id-field", "key", "--model", model_folder]
    command += ["-o", tmp_path / "scores.tsv"]
    append = PartialFile.append

    def stop(partial, record):
        if partial.path.exists() and partial.path.read_bytes().count(b"\n") == 3:
            raise StoppedError
        append(partial, record)

    monkeypatch.setattr("simllm.metric.CHUNK", 8)
    with mock.patch.object(PartialFile, "append", stop), pytest.raises(StoppedError):
        run(*command)
    return command, tmp_path / "scores.tsv.partial"


@pytest.mark.parametrize("format_", ["tsv", "json", "text"])
@pytest.mark.parametrize("cut", [0, 1, 700, 10_000])
def test_a_resumed_run_writes_the_same_bytes(stopped_run, tmp_path, format_, cut):
    command, partial = stopped_run
    whole = run(*command[:-1], tmp_path / "whole", "-f", format_)
    left = partial.read_bytes()
    partial.write_bytes(left[: max(len(left) - cut, left.index(b"\n") + 1)])  # as a kill may leave it
    done = run(*command, "-f", format_, "--resume")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "scores.tsv").read_bytes() == (tmp_path / "whole").read_bytes()
    assert done.stderr == whole.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["scores.tsv", "short.jsonl", "whole"]


@pytest.mark.parametrize("option", ["-o", "--report"])
def test_files_that_are_read_are_never_replaced(model_folder, tmp_path, option):
    texts, table = tmp_path / "texts", tmp_path / "table.json"
    texts.write_text("adds two lists\n")
    assert run("frequencies", texts, "-o", table, "--model", model_folder).returncode == 0
    model = shutil.copytree(model_folder, tmp_path / "model")
    words = (
        "score",
        "-c",
        texts,
        "-r",
        texts,
        "--model",
        model,
        "--similarity",
        "f1",
        "--frequencies",
        table,
    )
    for file in (table, model / "config.json"):
        before = file.read_bytes()
        done = run(*words, option, file, "--overwrite")
        assert (done.returncode, done.stderr) == (2, f"simllm: error: {file}: would overwrite what is read\n")
        assert file.read_bytes() == before


def test_resume_without_an_earlier_run_scores_everything(model_folder, tmp_path):
    done = run("score", "a", "b", "-o", tmp_path / "scores.tsv", "--resume", "--model", model_folder)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["scores.tsv"]
    again = run("score", "a", "b", "-o", tmp_path / "scores.tsv", "--resume", "--model", model_folder)
    assert again.returncode == 2
    assert again.stderr == (
        f"simllm: error: {tmp_path / 'scores.tsv'}: exists already, and there is no unfinished run; "
        "--overwrite scores all pairs again\n"
    )


@pytest.mark.slow
def test_interrupt_before_the_first_pairs(tmp_path, model_folder):
    command = [sys.executable, "-m", "simllm", "score", "--jsonl", "-", "--model", str(model_folder)]
    out, lock = tmp_path / "scores.tsv", tmp_path / ".scores.tsv.lock"
    running = subprocess.Popen(
        [*command, "-o", str(out)], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        deadline = time.monotonic() + 120
        while not lock.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(1)  # until the process reads
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=60)
    finally:
        running.kill()
    assert (running.returncode, errors) == (
        130, "simllm: interrupted before any pair was scored\n"
    )  # fmt: skip
    assert not out.exists()


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (["--mode", "fast"], r"partial: begun with signature \S+, not \S+dtype:bfloat16\S+"),
        (["--pooling", "cls"], "partial: begun with signature .*"),
        (["--on-long", "window"], "partial: begun with signature .*"),
        (["--jsonl", "longer"], "partial: begun with pairs 30, not 31"),
        (["--jsonl", "another"], "partial: differs from the input after pair 0; use the same input"),
        (["--jsonl", "changed"], "partial: differs from the input after pair 8; use the same input"),
        (["--id-field", "reference"], "partial: differs from the input after pair 0; use the same input"),
        (["--mode", "fsat"], "argument --mode: invalid choice: 'fsat' .*"),
        (["--scale", "rank"], "argument --scale: invalid choice: 'rank' .*"),
        (["-o", "-"], "--resume goes with -o FILE"),
        (["-o", "/dev/null"], "--resume goes with -o FILE"),
    ],
)
def test_a_run_with_other_input_or_options_is_not_resumed(stopped_run, write_pairs, other, message, tmp_path):
    if "fast" in other and not has_fast_bfloat16("cpu"):
        pytest.skip("without instructions for bfloat16, this mode computes what the exact one does")
    command, partial = stopped_run
    before = partial.read_bytes()
    lines = write_pairs.read_text().splitlines(keepends=True)
    (tmp_path / "longer").write_text("".join(lines[:31]))
    (tmp_path / "another").write_text("".join(lines[30:60]))
    (tmp_path / "changed").write_text("".join([*lines[:10], lines[11], lines[10], *lines[12:30]]))
    other = [tmp_path / word if word in ("longer", "another", "changed") else word for word in other]
    done = run(*command, "--resume", *other)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(rf"simllm: error: (.*scores\.tsv\.)?{message}\n", done.stderr), done.stderr
    assert partial.read_bytes() == before


def test_partial_file_is_kept_without_resume(stopped_run):
    command, partial = stopped_run
    before = partial.read_bytes()
    for options in ((), ("--overwrite",), ("-f", "json")):
        done = run(*command, *options)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == (
            f"simllm: error: {partial}: holds an earlier run; --resume continues it, or remove the file\n"
        )
    assert partial.read_bytes() == before


def test_resume_with_ids_of_every_type(stopped_run, model_folder, tmp_path):
    command, partial = stopped_run
    partial.unlink()
    ids = [float("nan"), None, [1, {"a": "é"}], "\udcff", 12345678901234567890, *range(25)]
    rows = [{"candidate": "a", "reference": "a b", "key": id_} for id_ in ids]
    (tmp_path / "short.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run(*command).returncode == 0
    whole = (tmp_path / "scores.tsv").read_bytes()
    (tmp_path / "scores.tsv").unlink()
    with (
        mock.patch("simllm.io.output_file.check_output", side_effect=[None, None, StoppedError]),
        pytest.raises(StoppedError),
    ):
        run(*command)
    assert partial.exists()
    done = run(*command, "--resume")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "scores.tsv").read_bytes() == whole


def test_output_that_appears_during_the_run_is_kept(stopped_run, tmp_path, monkeypatch):
    command, partial = stopped_run
    append = PartialFile.append

    def late(partial, record):
        (tmp_path / "scores.tsv").write_text("theirs")
        append(partial, record)

    monkeypatch.setattr(PartialFile, "append", late)
    done = run(*command, "--resume")
    assert done.returncode == 2
    assert "scores.tsv: exists already" in done.stderr
    assert (tmp_path / "scores.tsv").read_text() == "theirs"
    assert run(*command, "--resume", "--overwrite").returncode == 0
    assert (tmp_path / "scores.tsv").read_text().startswith("id\tscore\t")
    assert not partial.exists()


def test_second_process_for_one_output_is_refused(stopped_run, tmp_path):
    command, partial = stopped_run
    before = partial.read_bytes()
    with locked(tmp_path / "scores.tsv"):
        done = run(*command, "--resume")
    assert (done.returncode, done.stderr) == (
        2, f"simllm: error: {tmp_path / 'scores.tsv'}: another process is writing there\n"
    )  # fmt: skip
    assert partial.read_bytes() == before


def test_input_file_is_not_mistaken_for_a_partial_file(write_pairs, tmp_path):
    (tmp_path / "scores.tsv.partial").write_bytes(write_pairs.read_bytes())
    done = run("score", "--jsonl", tmp_path / "scores.tsv.partial", "-o", tmp_path / "scores.tsv")
    assert done.returncode == 2
    assert "would overwrite what is read" in done.stderr
