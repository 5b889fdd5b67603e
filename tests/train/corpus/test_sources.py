import gzip
import json
import os
import subprocess

import pytest

from simllm.errors import InputError
from train.corpus import sources
from train.corpus.comment import Comment
from train.corpus.sources import Docstring
from train.corpus.tally import Tally
from train.corpus.trees import Code


def read(path, tags=0):
    tally = Tally()
    return list(sources.read(str(path), tags, tally)), tally


def test_a_folder_in_a_folder_is_a_repository(tree, tmp_path):
    tree(tmp_path / "all" / "one", 2)
    tree(tmp_path / "all" / "two" / "deep", 2)
    (tmp_path / "all" / "one" / "LICENSE.txt").write_text("do what you like")
    (tmp_path / "all" / "two" / "node_modules").mkdir()
    (tmp_path / "all" / "two" / "node_modules" / "other.js").write_text("/** Not ours. */ function f() {}")
    (tmp_path / "all" / "notes.md").write_text("# no code")
    found, _ = read(tmp_path / "all")
    assert {(code.repository, code.path, code.licence) for code in found} == {
        ("one", "m0.py", "LICENSE.txt"),
        ("one", "m1.py", "LICENSE.txt"),
        ("two", "deep/m0.py", ""),
        ("two", "deep/m1.py", ""),
    }


def test_a_git_repository_is_read_without_a_checkout(tree, git, tmp_path):
    work = tree(tmp_path / "owner" / "work", 3)
    (work / "COPYING").write_text("free")
    git(work, "init")
    git(work, "add", ".")
    git(work, "commit", "-m", "first")
    (work / "m1.py").write_text("changed, but not committed")
    (work / "new.py").write_text("not committed")
    git(tmp_path, "clone", "--bare", work, tmp_path / "owner" / "bare.git")
    from_work, _ = read(work)
    from_bare, _ = read(tmp_path / "owner" / "bare.git")
    both, _ = read(tmp_path / "owner")
    assert {(c.repository, c.licence) for c in from_work} == {("owner/work", "COPYING")}
    assert {c.repository for c in from_bare} == {"owner/bare"}
    assert {c.repository for c in both} == {"work", "bare"}
    assert [c.data for c in from_work] == [c.data for c in from_bare]
    assert [c.path for c in from_work] == ["m0.py", "m1.py", "m2.py"]
    assert b"Counts the value of kind 1" in from_work[1].data


def test_tags_are_read_from_head_backwards_and_each_content_once(tree, git, tmp_path):
    work = tree(tmp_path / "work", 2)
    git(work, "init")
    for version in range(5):
        (work / "m1.py").write_text(f'def f():\n    """Counts all the things, version {version}."""\n')
        git(work, "add", ".")
        git(work, "commit", "-m", str(version))
        git(work, "tag", f"v{version}")
    assert len(read(work)[0]) == 2
    found, _ = read(work, tags=9)
    versions = [c.data.split(b"version ")[1][:1] for c in found if c.path == "m1.py"]
    assert versions[0] == b"4"
    assert sorted(versions) == [b"0", b"1", b"2", b"3", b"4"]
    assert sum(c.path == "m0.py" for c in found) == 1
    assert len(read(work, tags=2)[0]) < len(found)


def test_a_broken_repository_is_named(git, tmp_path):
    folder = tmp_path / "empty"
    folder.mkdir()
    git(folder, "init")
    found, tally = read(folder)
    assert not found
    assert tally.counts["unreadable repository"] == 1
    assert str(folder) in tally.examples["unreadable repository"][0][0]


def test_links_large_files_and_unreadable_folders_are_counted(tree, tmp_path):
    code = tree(tmp_path / "all" / "code", 2)
    (code / "loop").symlink_to(code)
    (code / "away.py").symlink_to("/nowhere")
    (code / "large.py").write_text("x = '" + "a" * 50_000_000 + "'")
    (code / "closed").mkdir(mode=0)
    os.mkfifo(code / "pipe.py")
    found, tally = read(tmp_path / "all")
    assert len(found) == 2
    assert tally.counts["symbolic link"] == 2
    assert tally.counts["file too large"] == 1
    if os.geteuid():  # root reads everything
        assert tally.counts["unreadable folder"] == 1
    (code / "closed").chmod(0o700)


def test_a_deep_tree_is_walked(tmp_path):
    deep = tmp_path.joinpath("all", *["d"] * 1200)
    subprocess.run(["mkdir", "-p", deep], check=True)  # too deep for Python's own
    try:
        (deep / "m.py").write_text("x = 1")
        found, _ = read(tmp_path / "all")
    finally:
        subprocess.run(["rm", "-r", tmp_path / "all"], check=True)
    assert [code.path for code in found] == ["d/" * 1199 + "m.py"]


def test_codesearchnet_is_read_as_published(tmp_path):
    row = {
        "repo": "owner/name", "path": "a/b.py", "func_name": "Cls.f", "language": "python",
        "docstring": "Adds two lists.\n\nLonger text.\n\n:param a: a list", "code": "def f(): ...",
        "docstring_tokens": [], "partition": "train",
    }  # fmt: skip
    with gzip.open(tmp_path / "python_train_0.jsonl.gz", "wt") as file:
        file.write(json.dumps(row) + "\n")
    found, _ = read(tmp_path / "*.jsonl.gz")
    assert found == [Docstring(row["docstring"], "python", "Cls.f", "a/b.py", "owner/name")]


def test_lines_and_json_lines_are_comments(tmp_path):
    (tmp_path / "a.txt").write_text("adds two lists\nsets a key\n")
    (tmp_path / "b.jsonl").write_text('{"summary": "Adds.", "language": "go", "x": 1}\n{"text": "Sets."}\n')
    assert read(tmp_path / "a.txt")[0] == [Comment("adds two lists"), Comment("sets a key")]
    assert read(tmp_path / "b.jsonl")[0] == [Comment("Adds.", language="go"), Comment("Sets.")]


def test_the_installed_python_is_read():
    items = sources.read("installed-python", 0, Tally())
    first = [next(items) for _ in range(20)]
    assert all(isinstance(code, Code) and code.repository == "python" for code in first)


def test_a_missing_source_is_named():
    with pytest.raises(InputError, match=r"source 'none/\*\.txt': no such file"):
        read("none/*.txt")
