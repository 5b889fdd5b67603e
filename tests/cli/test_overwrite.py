"""An existing output file is replaced only when the user says so, and never if the command reads it."""

import os
import shutil
import subprocess
import sys
import time

import pytest

from simllm.cli.main import main
from simllm.io.output_folder import OutputFolder


@pytest.fixture
def files(tmp_path, monkeypatch):
    (tmp_path / "c.txt").write_text("adds two lists\n")
    (tmp_path / "r.txt").write_text("combines 2 arrays\n")
    (tmp_path / "p.jsonl").write_text('{"reference": "a", "candidate": "b", "rating": 1}\n')
    (tmp_path / "thesis.txt").write_text("years of work")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [
        ("score", "-c", "c.txt", "-r", "r.txt"),
        ("frequencies", "r.txt"),
        ("compare", "-r", "r.txt", "-c", "c.txt"),
        ("explain", "a", "b"),
        ("info",),
        ("selftest",),
        ("export",),
        ("evaluate", "--ratings", "p.jsonl"),
        ("evaluate", "contrast"),
        ("evaluate", "robustness"),
    ],
    ids=" ".join,
)
def test_an_existing_file_is_replaced_only_with_overwrite(command, files, monkeypatch, capsys):
    monkeypatch.chdir(files)
    (files / "thesis.txt").write_text("years of work")
    assert main([*command, "-o", "thesis.txt"]) == 2
    assert capsys.readouterr().err == "simllm: error: thesis.txt: exists already; --overwrite replaces it\n"
    assert (files / "thesis.txt").read_text() == "years of work"
    if command[0] == "explain":
        assert main([*command, "-o", "thesis.txt", "--overwrite"]) == 0
        assert "a" in (files / "thesis.txt").read_text() != "years of work"


@pytest.fixture
def read(files, model_folder):
    """The current folder, with a model folder and all the kinds of files that commands read."""
    shutil.copytree(model_folder, "model")
    (files / "items.jsonl").write_text('{"id": "1", "language": "python", "source": "def f(a): return a"}\n')
    (files / "names.tsv").write_text("a\tb\n")
    (files / "triples.jsonl").write_text('{"reference": "a", "rewording": "b", "change": "c"}\n')
    (files / "about.toml").write_text('model = "a"\n')
    (files / "labels.csv").write_text("item,gold,predicted\n1,a,a\n2,b,b\n")
    (files / "hard").hardlink_to("c.txt")
    (files / "soft").symlink_to("c.txt")
    (files / "out.partial").write_text("mine")
    (files / "code").mkdir()
    (files / "code" / "a.py").write_text("def f(a): return a\n")
    (files / "code" / "link.py").hardlink_to(files / "p.jsonl")
    return files


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


SCORE = "score -c c.txt -r r.txt"


@pytest.mark.parametrize(
    ("command", "out"),
    [
        ("info --model model", "model/config.json"),
        ("selftest --model model", "model/simllm.json"),
        ("explain a b --model model", "model/tokenizer.json"),
        ("export --model model", "model/model.safetensors"),
        ("frequencies r.txt --model model", "model/simllm.json"),
        ("frequencies r.txt", "r.txt"),
        ("compare -r r.txt -c c.txt --model model", "model/README.md"),
        ("compare -r r.txt -c c.txt r.txt", "c.txt"),
        (SCORE, "hard"),
        (SCORE, "soft"),
        (SCORE, "model/../c.txt"),
        ("score -c out.partial -r r.txt", "out"),
        (f"{SCORE} --model model", "model/config.json"),
        (f"{SCORE} --metrics simllm=model", "model/model.safetensors"),
        (f"{SCORE} --metrics chrf,word-vectors=p.jsonl", "p.jsonl"),
        (f"{SCORE} --metrics crystalbleu=p.jsonl", "code/link.py"),
        ("evaluate correlation --ratings p.jsonl --metrics word-vectors=r.txt", "r.txt"),
        ("evaluate contrast --triples triples.jsonl --metrics simllm --model model", "model/config.json"),
        ("evaluate robustness --summaries c.txt", "hard"),
        ("evaluate study --ratings p.jsonl --out study --checkpoints code", "code/a.py"),
        ("evaluate classifiers labels.csv --about about.toml --out study", "about.toml"),
        ("evaluate metamorphic --recorded p.jsonl --out study", "p.jsonl"),
        ("evaluate edits items.jsonl --out study", "items.jsonl"),
        ("perturb code --jsonl items.jsonl --names names.tsv", "names.tsv"),
        ("split labels.csv", "labels.csv"),
        ("frequencies --ngrams 5 --language python code", "code/a.py"),
        ("frequencies --ngrams 5 --language python code", "code/link.py"),
    ],
)
def test_no_command_replaces_what_it_reads(command, out, read, capsys):
    before = contents(read)
    (read / "model" / ".simllm").unlink()  # a model folder from elsewhere has no marker
    del before[read / "model" / ".simllm"]
    assert main([*command.split(), "-o", out, "--overwrite"]) == 2
    named = "out.partial" if out == "out" else out
    assert (
        capsys.readouterr().err.replace(f"{read}/", "")
        == f"simllm: error: {named}: would overwrite what is read\n"
    )
    assert contents(read) == before


@pytest.mark.parametrize("option", ["--report", "-o"])
def test_the_report_replaces_nothing_that_is_read(option, read, capsys):
    before = contents(read)
    assert main([*SCORE.split(), "--model", "model", option, "model/config.json", "--overwrite"]) == 2
    assert "would overwrite what is read" in capsys.readouterr().err
    assert contents(read) == before


@pytest.mark.parametrize("out", ["model", "above"])
def test_no_report_folder_replaces_a_model_that_is_read(out, read, capsys):
    OutputFolder(read / "above", "a study").own()
    (read / "model").rename(read / "above" / "model")
    (read / "model").symlink_to("above/model")
    before = contents(read)
    words = ["evaluate", "study", "--ratings", "p.jsonl", "--metrics", "simllm=model", "--out", out]
    assert main(words) == 2
    assert capsys.readouterr().err.startswith(f"simllm: error: {out}: is the source model")
    assert contents(read) == before


def test_texts_that_are_names_of_files_are_no_inputs(read):
    (read / "a").write_text("old")
    assert main(["explain", "a", "b", "--model", "model", "-o", "a", "--overwrite"]) == 0
    assert (read / "a").read_text() != "old"


@pytest.mark.slow
def test_a_second_run_that_writes_the_same_file_is_refused(read):
    os.mkfifo("items.fifo")
    command = [
        sys.executable,
        "-m",
        "simllm",
        "perturb",
        "code",
        "--jsonl",
        "items.fifo",
        "-o",
        "variants.jsonl",
    ]
    first = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while not (read / ".variants.jsonl.output.lock").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    command[command.index("items.fifo")] = "items.jsonl"
    second = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    refused = f"simllm: error: {read / 'variants.jsonl'}: another process is writing there\n"
    assert (second.returncode, second.stderr) == (2, refused)
    (read / "items.fifo").write_text((read / "items.jsonl").read_text())
    _, errors = first.communicate(timeout=120)
    assert first.returncode == 0, errors
    assert (read / "variants.jsonl").read_text().count("\n") == 1
    assert not list(read.glob(".*"))
