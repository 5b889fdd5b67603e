"""The recipe of the default model: its repositories and its commands."""

import argparse
import subprocess

import pytest

from simllm.errors import InputError
from tests.conftest import ROOT
from tests.train.release.test_card import command
from train import reproduce
from train.reproduce import commands, repositories
from train.runtime.config import ContrastiveConfig, load


def git(folder, *arguments):
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_a_repository_is_cloned_once_at_its_revision(tmp_path, monkeypatch):
    origin = tmp_path / "host" / "owner" / "name"
    origin.mkdir(parents=True)
    git(origin, "init", "--quiet")
    revisions = []
    for text in ("first", "second"):
        (origin / "file.py").write_text(text)
        git(origin, "add", ".")
        git(origin, "commit", "--quiet", "-m", text)
        revisions.append(git(origin, "rev-parse", "HEAD"))
    monkeypatch.setattr(reproduce, "_HOST", (tmp_path / "host").as_uri())
    trees = tmp_path / "trees"
    cloned = reproduce.tree(trees, "owner/name", revisions[0])
    assert cloned == trees / "owner+name" / "repo"
    assert git(cloned, "show", "HEAD:file.py") == "first"
    monkeypatch.setattr(reproduce, "_HOST", "file:///nowhere")
    assert reproduce.tree(trees, "owner/name", revisions[1]) == cloned  # taken as it is
    assert git(cloned, "show", "HEAD:file.py") == "first"
    with pytest.raises(InputError, match="owner/other: cannot be cloned at"):
        reproduce.tree(trees, "owner/other", revisions[0])
    assert not (trees / "owner+other" / "repo").exists()


def test_a_revision_that_is_not_there_leaves_nothing(tmp_path, monkeypatch):
    origin = tmp_path / "host" / "owner" / "name"
    origin.mkdir(parents=True)
    git(origin, "init", "--quiet")
    git(origin, "commit", "--quiet", "--allow-empty", "-m", "only")
    monkeypatch.setattr(reproduce, "_HOST", (tmp_path / "host").as_uri())
    with pytest.raises(InputError, match="owner/name: cannot be cloned at 0123"):
        reproduce.tree(tmp_path / "trees", "owner/name", "0123" * 10)
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
    assert {step[0].partition(".")[2].partition(".")[0] for step in steps} >= {
        "pretrain", "wordnet", "contrastive", "release", "calibrate", "golden",
    }  # fmt: skip
    second = [step for step in steps if step[0] == "train.contrastive"]
    runs = [load(ContrastiveConfig, ROOT / step[1], step[2:]) for step in second]
    assert [run.hold_out_contrast for run in runs] == [False, False, True]
    assert [run.seed for run in runs] == [1, 2, 1]
    made = {step[3] for step in steps if step[0] == "train.contrastive.wordnet_pairs"}
    assert {source.source for run in runs for source in run.positives if "wordnet" in source.source} == made
    (release,) = (step for step in steps if step[0] == "train.release")
    assert {run.out for run in runs} <= set(release)
