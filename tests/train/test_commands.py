"""Commands that do not train: their help texts, and files that they must not replace."""

import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.train.training_processes import content
from train.contrastive import near_duplicate_pairs, wordnet_pairs
from train.fairseq import __main__ as fairseq
from train.pretrain import perplexity_plot
from train.release import __main__ as release
from train.release import calibrate, folder, measure, refresh

MAINS = sorted(
    ".".join(file.relative_to(ROOT).with_suffix("").parts)
    for file in (ROOT / "train").rglob("*.py")
    if "\ndef main()" in file.read_text(encoding="utf-8") and "corpus" not in file.parts
)


@pytest.mark.parametrize("module", MAINS)
def test_every_command_has_help(call, module):
    done = call(importlib.import_module(module), "--help")
    assert done.returncode == 0
    assert f"usage: python -m {module.removesuffix('.__main__')} " in done.stdout


@pytest.mark.parametrize(
    "module", ["train.corpus.__main__", "train.data.__main__", "train.runtime.print_run_folder"]
)
def test_commands_without_a_model_import_nothing_slow(module):
    """Every worker and every job script imports these modules, so they must be quick to import."""
    program = f"import sys, {module}; print({{'torch', 'matplotlib'}} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"


@pytest.mark.parametrize("module", ["train.pretrain", "train.data"])
def test_a_missing_package_is_one_line_with_the_command_that_installs_it(module, tmp_path):
    (tmp_path / "yaml.py").write_text("raise ModuleNotFoundError('no such module', name='yaml')\n")
    done = subprocess.run(
        [sys.executable, "-m", module, "--help"],
        cwd=ROOT, env=os.environ | {"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "error: yaml is not installed; in a checkout of simllm, run pip install '.[train,code,eval]'"
    ]


@pytest.fixture
def inputs(tmp_path, sets):
    """Write the inputs of the commands: a few texts, a log, a WordNet without synsets."""
    (tmp_path / "texts.txt").write_text("adds two lists of numbers\nadd the two lists of numbers\n")
    (tmp_path / "log.jsonl").write_text(json.dumps({"update": 1, "train_loss": 2.0, "test_perplexity": 3.0}))
    for part in ("verb", "noun", "adj", "adv"):
        (tmp_path / f"data.{part}").touch()
    return tmp_path


@pytest.fixture(params=["wordnet_pairs", "near_duplicate_pairs", "measure", "perplexity_plot"])
def writer(request, inputs, model_folder, sets):
    """Return the module of a command that writes a file, the command's arguments, and the output file."""
    out = inputs / "out.svg"
    return {
        "wordnet_pairs": (wordnet_pairs, [inputs, inputs / "texts.txt", out], out),
        "near_duplicate_pairs": (near_duplicate_pairs, [inputs / "texts.txt", out], out),
        "measure": (measure, [model_folder, "--config", sets, "-o", out], out),
        "perplexity_plot": (perplexity_plot, [inputs / "log.jsonl", "-o", out], out),
    }[request.param]


def test_existing_output_is_replaced_only_with_overwrite(call, writer):
    module, arguments, out = writer
    out.write_text("mine\n")
    done = call(module, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: {out}: exists already; --overwrite replaces it\n"
    assert out.read_text() == "mine\n"
    assert call(module, *arguments, "--overwrite").returncode == 0
    assert out.read_text() != "mine\n"


def test_output_is_checked_before_the_work(call, writer, monkeypatch):
    module, arguments, out = writer
    work = {wordnet_pairs: "make_pairs", near_duplicate_pairs: "find_pairs", measure: "measure"}
    monkeypatch.setattr(module, work.get(module, "draw"), None)
    out.write_text("mine\n")
    assert "exists already" in call(module, *arguments).stderr
    out.unlink()
    out.mkdir()
    assert "is a folder" in call(module, *arguments, "--overwrite").stderr


def test_an_input_is_never_the_output(call, writer):
    module, arguments, out = writer
    inputs = [argument for argument in arguments if isinstance(argument, Path) and argument.is_file()]
    for file in inputs:
        before = file.read_bytes()
        done = call(module, *[file if argument == out else argument for argument in arguments], "--overwrite")
        assert done.returncode == 2
        assert "would overwrite what is read" in done.stderr
        assert file.read_bytes() == before


def test_release_into_a_user_folder_is_refused(call, model_folder, inputs, monkeypatch):
    run, out = inputs / "run", inputs / "mine"
    shutil.copytree(model_folder, run / "model")
    (run / "log.jsonl").write_text("{}\n")
    out.mkdir()
    (out / "notes.txt").write_text("mine\n")
    monkeypatch.setattr(folder, "postprocess", None)
    arguments = [run, "--notes", inputs / "texts.txt"]
    before = content(inputs)
    done = call(release, *arguments, "--out", out)
    assert done.returncode == 2
    assert "holds files that simllm did not write" in done.stderr
    for place in (run, run / "model", inputs):
        done = call(release, *arguments, "--out", place)
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1
    assert content(inputs) == before


@pytest.mark.filterwarnings("ignore:.*texts cut at")
@pytest.mark.parametrize("name", ["simllm.json", ".simllm"])
def test_model_folder_of_a_user_is_unchanged(call, model_folder, inputs, monkeypatch, name):
    """A model folder belongs to the user if its marker, simllm's list of files, is missing or incomplete."""
    model = shutil.copytree(model_folder, inputs / "model")
    if name == ".simllm":
        (model / name).unlink()
    else:
        marker = json.loads((model / ".simllm").read_text())
        marker["files"].remove(name)
        (model / ".simllm").write_text(json.dumps(marker))
    before = content(model)
    monkeypatch.setattr(calibrate, "SimLLM", None)  # the folder is refused before the work
    done = call(calibrate, model, "--comments", inputs / "texts.txt")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "not written by simllm" in done.stderr
    assert content(model) == before
    if name == ".simllm":
        monkeypatch.setattr(refresh, "measure", None)
        done = call(refresh, model, "--notes", inputs / "texts.txt")
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert content(model) == before


def test_too_few_labelled_pairs_leave_the_model_unchanged(call, model_folder, inputs):
    model = shutil.copytree(model_folder, inputs / "model")
    before = content(model)
    (inputs / "labelled.jsonl").write_text('{"a": "x y", "b": "x z", "label": "same", "set": "paws"}\n')
    files = ("--comments", inputs / "texts.txt")
    done = call(calibrate, model, *files, "--labelled", inputs / "labelled.jsonl")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "labelled.jsonl: too few pairs" in done.stderr
    assert content(model) == before


def test_import_and_export_refuse_existing_folders(call, inputs):
    (inputs / "link").symlink_to(inputs / "nowhere")
    before = content(inputs)
    for out in (inputs, inputs / "texts.txt", inputs / "link"):
        for arguments in (["export-data", inputs], ["import-checkpoint", inputs / "a", inputs / "b"]):
            done = call(fairseq, *arguments, out)
            assert (done.returncode, done.stderr) == (2, f"error: {out}: exists already\n")
    assert content(inputs) == before
