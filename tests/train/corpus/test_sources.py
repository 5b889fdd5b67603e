import gzip
import json
import os
import shutil
import subprocess

import pytest

from simllm.code import git_repository as git_reader
from simllm.errors import InputError
from train.corpus import sources
from train.corpus.comments import Comment
from train.corpus.parts import Tally
from train.corpus.source_trees import Code
from train.corpus.sources import Docstring


def read(path, tags=0):
    tally = Tally()
    return list(sources.read(str(path), tags, tally)), tally


def test_subfolders_are_repositories(tree, tmp_path):
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


@pytest.mark.slow
def test_tags_are_read_backwards_from_head_without_repetition(tree, git, tmp_path):
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


def test_broken_repository_is_counted(git, tmp_path):
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
    if os.geteuid():  # root can read all files
        assert tally.counts["unreadable folder"] == 1
    (code / "closed").chmod(0o700)


def test_deep_folders_are_read(tmp_path):
    deep = tmp_path.joinpath("all", *["d"] * 1020)
    subprocess.run(["mkdir", "-p", deep], check=True)  # too deep for Python's own
    try:
        (deep / "m.py").write_text("x = 1")
        found, _ = read(tmp_path / "all")
    finally:
        subprocess.run(["rm", "-r", tmp_path / "all"], check=True)
    assert [code.path for code in found] == ["d/" * 1019 + "m.py"]


def test_tag_without_commit_is_skipped(tree, git, tmp_path):
    work = tree(tmp_path / "work", 1)
    git(work, "init")
    for version in range(3):
        (work / "m0.py").write_text(f'def f():\n    """Counts all the things, version {version}."""\n')
        git(work, "add", ".")
        git(work, "commit", "-m", str(version))
        git(work, "tag", f"v{version}")
    git(work, "tag", "file", "HEAD:m0.py")
    git(work, "tag", "-a", "-m", "a file", "annotated", "HEAD:m0.py")
    (work / ".git" / "refs" / "tags" / "gone").write_text("1" * 40 + "\n")
    (work / ".git" / "refs" / "tags" / "odd").write_text("ref: refs/../../../secret\n")
    found, _ = read(work, tags=9)
    assert {code.data.split(b"version ")[1][:1] for code in found} == {b"0", b"1", b"2"}


def test_packed_refs_and_linked_work_trees_are_read(tree, git, tmp_path):
    work = tree(tmp_path / "all" / "work", 3)
    git(work, "init")
    git(work, "add", ".")
    git(work, "commit", "-m", "first")
    git(work, "tag", "-a", "-m", "one", "v1")
    git(work, "worktree", "add", "-b", "other", "../linked")
    (tmp_path / "all" / "linked" / "new.py").write_text("not committed")
    git(work, "pack-refs", "--all")
    found, tally = read(tmp_path / "all", tags=3)
    assert [code.repository for code in found] == ["linked"] * 3 + ["work"] * 3
    assert not tally.counts


def test_a_sha256_repository_is_read(tree, git, tmp_path):
    work = tree(tmp_path / "work", 3)
    git(work, "init", "--object-format=sha256")
    git(work, "add", ".")
    git(work, "commit", "-m", "first")
    assert len(read(work)[0]) == 3


@pytest.mark.parametrize("kind", ["file", "link"])
def test_a_git_folder_outside_the_source_is_not_followed(kind, tree, git, tmp_path):
    secret = tree(tmp_path / "secret", 3)
    git(secret, "init")
    git(secret, "add", ".")
    git(secret, "commit", "-m", "first")
    work = tree(tmp_path / "all" / "work", 2, "plain")
    if kind == "link":
        (work / ".git").symlink_to(secret / ".git")
    else:
        (work / ".git").write_text(f"gitdir: {secret / '.git'}\n")
    for source in (tmp_path / "all", work):
        found, tally = read(source)
        assert [code.path for code in found] == ["m0.py", "m1.py"]
        assert all(b"plain" in code.data for code in found)
        assert tally.counts["git folder elsewhere"] == 1


@pytest.mark.parametrize("way", ["alternates", "link", "pipe", "common"])
def test_objects_outside_the_source_are_not_read(way, tree, git, tmp_path):
    secret, work = tree(tmp_path / "secret", 3), tmp_path / "all" / "work"
    git(secret, "init")
    git(secret, "add", ".")
    git(secret, "commit", "-m", "first")
    work.mkdir(parents=True)
    git(work, "init")
    theirs, own = secret / ".git", work / ".git"
    (own / "HEAD").write_bytes((theirs / "refs" / "heads" / "main").read_bytes())
    if way == "alternates":
        (own / "objects" / "info" / "alternates").write_text(f"{theirs / 'objects'}\n")
    elif way == "common":
        (own / "commondir").write_text(f"{theirs}\n")
    elif way == "pipe":
        os.mkfifo(own / "objects" / "pack" / "pack-1.idx")
    else:
        for folder in (theirs / "objects").iterdir():
            if len(folder.name) == 2:
                (own / "objects" / folder.name).symlink_to(folder)
    found, tally = read(tmp_path / "all")
    assert not found
    assert tally.counts["unreadable repository"] + tally.counts["git folder elsewhere"] == 1


def test_named_pipes_instead_of_refs_are_not_opened(tree, git, tmp_path):
    work = tree(tmp_path / "work", 3)
    git(work, "init")
    git(work, "add", ".")
    git(work, "commit", "-m", "first")
    for name in ("packed-refs", "config.worktree", "refs/tags/v1", "info/grafts", "commondir"):
        (work / ".git" / name).parent.mkdir(exist_ok=True)
        os.mkfifo(work / ".git" / name)
    assert len(read(work, tags=2)[0]) == 3


def test_repository_cannot_run_commands(tree, git, tmp_path, monkeypatch):
    work = tree(tmp_path / "work", 3)
    git(work, "init")
    git(work, "add", ".")
    git(work, "commit", "-m", "first")
    git(tmp_path, "clone", "--bare", work, tmp_path / "bare.git")
    blob = subprocess.run(
        ["git", "rev-parse", "HEAD:m1.py"], cwd=work, capture_output=True, text=True, check=True
    ).stdout.strip()
    run = tmp_path / "run"
    for folder in (work / ".git", tmp_path / "bare.git"):
        command = f"touch {run}"
        (folder / "include").write_text(f'[core]\nfsmonitor = "{command}"\n')
        (folder / "config").write_text(
            f'[core]\nrepositoryformatversion = 1\nfsmonitor = "{command}"\nsshCommand = "{command}"\n'
            f'gitProxy = "{command}"\npager = "{command}"\nhooksPath = {tmp_path}\n'
            f'alternateRefsCommand = "{command}"\n[include]\npath = include\n'
            f'[extensions]\npartialClone = origin\n[remote "origin"]\nurl = {tmp_path}\n'
            f'promisor = true\nuploadpack = "{command};"\n[filter "f"]\nsmudge = "{command}"\n'
            f'[diff "d"]\ntextconv = "{command}"\n'
        )
        (folder / "info" / "attributes").write_text("* filter=f diff=d\n")
    (work / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    old = tmp_path / "bin" / "git"  # does not know the variable that forbids fetching
    old.parent.mkdir()
    old.write_text(f'#!/bin/sh\nunset GIT_NO_LAZY_FETCH\nexec {shutil.which("git")} "$@"\n')
    old.chmod(0o755)
    monkeypatch.setenv("PATH", str(old.parent), prepend=os.pathsep)
    found, tally = read(work, tags=1)
    assert [code.path for code in found] == ["m0.py", "m2.py"]
    assert tally.counts["unreadable file"] == 1
    assert len(read(tmp_path / "bare.git", tags=1)[0]) == 3
    assert not run.exists()


def test_repository_with_exponentially_many_files_is_refused(git, tmp_path, monkeypatch):
    monkeypatch.setattr(git_reader, "MOST_FILES", 10_000)
    git(tmp_path, "init")

    def tree_of(row):
        rows = "".join(f"{row}\tf{n}.py\0" for n in range(10))
        command = ["git", "mktree", "-z"]
        done = subprocess.run(command, input=rows, cwd=tmp_path, capture_output=True, text=True, check=True)
        return f"040000 tree {done.stdout.strip()}"

    command = ["git", "hash-object", "-w", "--stdin"]
    blob = subprocess.run(command, input="x", cwd=tmp_path, capture_output=True, text=True, check=True)
    row = f"100644 blob {blob.stdout.strip()}"
    for _ in range(9):
        row = tree_of(row)
    identity = ["-c", "user.name=A", "-c", "user.email=a@b"]
    command = ["git", *identity, "commit-tree", "-m", "bomb", row.split()[-1]]
    commit = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    (tmp_path / ".git" / "HEAD").write_text(commit)
    found, tally = read(tmp_path)
    assert not found
    assert "more than 10,000 files" in tally.examples["unreadable revision"][0][0]


def test_existing_path_with_brackets_is_not_a_pattern(tmp_path):
    folder = tmp_path / "[old]"
    folder.mkdir()
    (folder / "x*.txt").write_text("adds two lists\n")
    (folder / "xy.txt").write_text("removes it\n")
    assert read(folder / "x*.txt")[0] == [Comment("adds two lists")]


def test_pipes_among_files_are_skipped(tmp_path):
    os.mkfifo(tmp_path / "a.txt")
    (tmp_path / "b.txt").write_text("adds two lists\n")
    found, tally = read(tmp_path / "*.txt")
    assert found == [Comment("adds two lists")]
    assert tally.counts["no file"] == 1


def test_too_long_names_are_skipped(tmp_path):
    deep = tmp_path.joinpath("all", *["d" * 250] * 15)
    deep.mkdir(parents=True)
    (tmp_path / "all" / "m.py").write_text("x = 1")
    command = ["python3", "-c", "import os\nfor _ in range(3): os.mkdir('d' * 250); os.chdir('d' * 250)"]
    subprocess.run(command, cwd=deep, check=True)
    found, tally = read(tmp_path / "all")
    subprocess.run(["rm", "-r", tmp_path / "all"], check=True)  # too deep for Python's own
    assert [code.path for code in found] == ["m.py"]
    assert tally.counts["unreadable folder"] == 1


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


def test_missing_source_is_an_error():
    with pytest.raises(InputError, match=r"source 'none/\*\.txt': no such file"):
        read("none/*.txt")
