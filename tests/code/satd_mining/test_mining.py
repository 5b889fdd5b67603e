"""Mined repositories: the search in folders, their names, and their splits."""

from collections import Counter
from pathlib import Path

import pytest

from simllm.code.satd_mining.mining import find_repositories, split_of
from simllm.errors import InputError
from tests.histories import git, make_history


def names(*folders):
    return [repository.name for repository in find_repositories(folders)]


@pytest.fixture
def folder(tmp_path):
    for name in ("all/one.git", "all/owner/two", "all/.hidden/three"):
        make_history(tmp_path / name, {"a.py": "1"})
    git(tmp_path, "clone", tmp_path / "all" / "one.git", tmp_path / "all" / "clone")
    make_history(tmp_path / "all" / "clone" / "inner.git", {"a.py": "1"})
    (tmp_path / "all" / "empty").mkdir()
    (tmp_path / "all" / "notes.txt").write_text("todo")
    (tmp_path / "all" / "link").symlink_to("owner")
    return tmp_path


def test_repositories_below_a_folder(folder, monkeypatch):
    assert names(folder / "all") == ["clone", "one", "owner/two"]
    assert names(folder / "all" / "one.git") == ["one"]
    assert names(folder / "all" / "owner", folder / "all" / "one.git") == ["one", "two"]
    monkeypatch.chdir(folder / "all" / "clone")
    assert find_repositories([Path()])[0].name == "clone"


def test_same_repository_twice_is_found_once(folder):
    assert names(folder / "all" / "one.git", folder / "all" / "one.git") == ["one"]


def test_two_repositories_with_one_name_are_refused(folder):
    make_history(folder / "other" / "one", {"a.py": "1"})
    with pytest.raises(InputError, match=r"one\.git and .*/one: both are called one"):
        names(folder / "all" / "one.git", folder / "other" / "one")
    assert names(folder) == ["all/clone", "all/one", "all/owner/two", "other/one"]


@pytest.mark.parametrize(
    ("name", "message"),
    [("empty", "no git repository in it"), ("notes.txt", "expected a folder"), ("none", "expected a folder")],
)
def test_folders_without_repositories_are_refused(folder, name, message):
    with pytest.raises(InputError, match=f"{name}: {message}"):
        names(folder / "all", folder / "all" / name)


def test_repository_that_leads_out_of_the_folder_is_left_out(folder):
    (folder / "all" / "empty" / ".git").write_text(f"gitdir: {folder / 'all' / 'one.git'}\n")
    with (
        pytest.warns(UserWarning, match="is outside of"),
        pytest.raises(InputError, match="no git repository"),
    ):
        names(folder / "all" / "empty")


def test_split_is_stable_and_has_the_stated_shares():
    assert [split_of(name) for name in ("django", "psf/requests", "caf\u00e9")] == ["test", "train", "train"]
    shares = Counter(split_of(f"repository {number}") for number in range(20_000))
    for name, share in (("train", 0.85), ("validation", 0.05), ("test", 0.10)):
        assert shares[name] / 20_000 == pytest.approx(share, abs=0.01)
