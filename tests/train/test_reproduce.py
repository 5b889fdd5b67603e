"""The recipe of the default model: its repositories and its commands."""

import argparse
import fnmatch
import re
import subprocess

import pytest

from simllm.errors import InputError
from tests.conftest import ROOT
from tests.train.release.test_card import command
from train import reproduce
from train.corpus import trees as corpus_trees
from train.corpus.tally import Tally
from train.data import catalog
from train.data.catalog import Catalog
from train.reproduce import commands, repositories
from train.runtime.config import ContrastiveConfig, load


def git(folder, *arguments):
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_a_repository_is_fetched_once_at_its_revision(tmp_path):
    origin = tmp_path / "host" / "owner" / "name"
    origin.mkdir(parents=True)
    git(origin, "init", "--quiet")
    revisions = []
    for text in ("first", "second"):
        (origin / "file.py").write_text(text)
        git(origin, "add", ".")
        git(origin, "commit", "--quiet", "-m", text)
        revisions.append(git(origin, "rev-parse", "HEAD"))
    host = (tmp_path / "host").as_uri()
    trees = tmp_path / "trees"
    fetched = reproduce.tree(trees, "owner/name", revisions[0], host)
    assert fetched == trees / "owner+name" / "repo"
    assert git(fetched, "show", "HEAD:file.py") == "first"
    assert [code.data for code in corpus_trees.folder(fetched, 0, Tally())] == [b"first"]
    assert reproduce.tree(trees, "owner/name", revisions[1], "file:///nowhere") == fetched  # taken as it is
    assert git(fetched, "show", "HEAD:file.py") == "first"
    with pytest.raises(InputError, match="owner/other: cannot be fetched at"):
        reproduce.tree(trees, "owner/other", revisions[0], host)
    assert not (trees / "owner+other" / "repo").exists()


def test_a_revision_that_is_not_there_leaves_nothing(tmp_path):
    origin = tmp_path / "host" / "owner" / "name"
    origin.mkdir(parents=True)
    git(origin, "init", "--quiet")
    git(origin, "commit", "--quiet", "--allow-empty", "-m", "only")
    host = (tmp_path / "host").as_uri()
    with pytest.raises(InputError, match="owner/name: cannot be fetched at 0123"):
        reproduce.tree(tmp_path / "trees", "owner/name", "0123" * 10, host)
    assert not list((tmp_path / "trees").rglob("HEAD"))


def test_the_recipe_names_its_repositories_and_what_is_missing(tmp_path):
    named = repositories(ROOT / "configs" / "repositories.tsv")
    assert len(named) > 100
    assert all(len(revision) == 40 and name.count("/") == 1 for name, revision in named)
    done = command("reproduce", "--trees", tmp_path, "--wordnet", tmp_path / "none")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "no such folder" in done.stderr


def test_every_step_of_the_recipe_is_a_command_that_loads(tmp_path):
    options = argparse.Namespace(wordnet=tmp_path, out=tmp_path / "out", seeds=2)
    steps = commands(options, [tmp_path / "tree"])
    assert {step[0].rpartition(".")[2] for step in steps} >= {
        "pretrain", "wordnet_pairs", "contrastive", "release", "calibrate", "golden",
    }  # fmt: skip
    second = [step for step in steps if step[0] == "train.contrastive"]
    runs = [load(ContrastiveConfig, ROOT / step[1], step[2:]) for step in second]
    assert [run.hold_out_contrast for run in runs] == [False, False, True]
    assert [run.seed for run in runs] == [1, 2, 1]
    made = {step[3] for step in steps if step[0] == "train.contrastive.wordnet_pairs"}
    assert {source.source for run in runs for source in run.positives if "wordnet" in source.source} == made
    (release,) = (step for step in steps if step[0] == "train.release")
    assert {run.out for run in runs} <= set(release)


def test_the_data_sets_are_fetched_first(tmp_path, monkeypatch):
    monkeypatch.setenv("SIMLLM_DATA", str(tmp_path / "data"))
    done = command("reproduce", "--trees", tmp_path, "--wordnet", tmp_path, "--host", "file:///nowhere")
    assert done.returncode == 2
    first, *_, last = done.stderr.splitlines()
    assert first.startswith("$ python -m train.data fetch emse_deepcom ")
    assert last.startswith(
        "error: corpus/emse_deepcom.jsonl.gz: similarityMetrics/similarityMetrics: cannot be"
    )
    assert not (tmp_path / "data" / "corpus").exists()


def test_every_data_file_that_the_configurations_name_is_fetched():
    table = load(Catalog, catalog.FILE, [])
    fetched = [file.path for found in table.chosen(reproduce._SETS) for file in found.files]
    names = [ROOT / "configs" / f"{name}.yaml" for name in ("mini", "contrastive", "measure")]
    named = {path for name in names for path in re.findall(r"\$\{data\}/(\S+)", name.read_text())}
    assert len(named) > 10
    for path in named:
        assert fnmatch.filter(fetched, path), path


def test_data_that_are_there_are_not_fetched(tmp_path):
    options = ["--trees", tmp_path / "trees", "--wordnet", tmp_path, "--data", tmp_path]
    done = command("reproduce", *options, "--host", "file:///nowhere")
    assert done.returncode == 2
    assert "train.data" not in done.stderr
    assert "cannot be fetched at" in done.stderr.splitlines()[-1]
