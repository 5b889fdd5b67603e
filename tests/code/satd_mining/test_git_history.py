"""Reading of a git history: the changed files of each commit are found, and read safely."""

import pytest

from simllm.code import git_history, git_repository
from simllm.code.git_folders import find_repository
from simllm.code.git_history import file_changes, file_versions
from simllm.code.git_repository import RepositoryLimitError, open_repository
from simllm.errors import InputError
from tests.histories import commit_stream, git, import_history, make_history

pytestmark = pytest.mark.slow  # many processes; the quick lane runs the documented pages

BIG = "".join(f"line {n}\n" for n in range(50))


def changes(folder, renames=True):
    repository = open_repository(find_repository(folder, folder))
    return list(file_changes(repository, (".py",), renames))


def versions(folder, is_wanted=lambda _: True, largest=1 << 20):
    repository = open_repository(find_repository(folder, folder))
    found = file_versions(repository, (".py",), is_wanted, largest)
    return [(each.path, each.before, each.after) for each in found]


def test_changed_files_from_the_first_commit_to_the_last(tmp_path):
    make_history(
        tmp_path / "r",
        {"a.py": "1", "b.py": "1", "c.txt": "1"},
        {"a.py": "2", "b.py": None, "c.txt": "2", "d.py": "1"},
        {"a.py": "3"},
    )
    assert versions(tmp_path / "r") == [("a.py", b"1", b"2"), ("a.py", b"2", b"3")]
    commits = git(tmp_path / "r", "log", "--reverse", "--format=%H").split()
    assert [change.commit for change in changes(tmp_path / "r")] == commits[1:]


def test_file_with_hidden_name_or_unknown_suffix_is_left_out(tmp_path):
    files = {"dir/.py": "1", "a.txt": "1", "b.py": "1"}
    make_history(tmp_path / "r", files, dict.fromkeys(files, "2"))
    assert versions(tmp_path / "r") == [("b.py", b"1", b"2")]


def test_paths_with_any_characters(tmp_path):
    names = ['"d e\\n.py"', '"\\303\\251.py"', '":x.py"']  # as git quotes them
    streams = [commit_stream(dict.fromkeys(names, content), n) for n, content in enumerate(("1", "2"), 1)]
    import_history(tmp_path / "r", b"".join(streams))
    assert sorted(versions(tmp_path / "r")) == [
        (":x.py", b"1", b"2"), ("d e\n.py", b"1", b"2"), ("\u00e9.py", b"1", b"2")
    ]  # fmt: skip


def test_renamed_file_is_one_changed_file(tmp_path):
    make_history(tmp_path / "r", {"a.py": BIG}, {"a.py": None, "lib/b.py": BIG + "more\n"})
    assert versions(tmp_path / "r") == [("lib/b.py", BIG.encode(), BIG.encode() + b"more\n")]


def test_unchanged_renamed_file_is_left_out(tmp_path):
    make_history(tmp_path / "r", {"a.py": BIG}, {"a.py": None, "b.py": BIG})
    assert changes(tmp_path / "r") == []


def test_merge_is_compared_with_its_first_parent(tmp_path):
    stream = commit_stream({"a.py": "1", "b.py": "1"}, 1)
    stream += commit_stream({"a.py": "2"}, 2, parent=1)
    stream += commit_stream({"b.py": "side 1"}, 3, parent=1, branch="side")
    stream += commit_stream({"b.py": "side 2"}, 4, parent=3, branch="side")
    stream += commit_stream({"b.py": "side 2"}, 5, parent=2, merged=4)
    import_history(tmp_path / "r", stream)
    assert versions(tmp_path / "r") == [("a.py", b"1", b"2"), ("b.py", b"1", b"side 2")]


def test_links_are_left_out(tmp_path):
    stream = commit_stream({"a.py": "1", "b.py": "b"}, 1)
    stream += commit_stream({"a.py": "2", "b.py": "c"}, 2).replace(b"M 100644 inline b", b"M 120000 inline b")
    import_history(tmp_path / "r", stream)
    assert [change.path for change in changes(tmp_path / "r")] == ["a.py"]


def test_only_wanted_and_small_files_are_read(tmp_path):
    before = {"a.py": "todo", "b.py": "b", "c.py": "todo" * 100, "d.py": "todo"}
    make_history(tmp_path / "r", before, {"a.py": "1", "b.py": "2", "c.py": "3", "d.py": "4" * 400})
    assert versions(tmp_path / "r", lambda data: b"todo" in data, 399) == [("a.py", b"todo", b"1")]


def test_large_file_between_small_ones(tmp_path):
    large = "x" * (5 << 20)
    make_history(
        tmp_path / "r", {"a.py": "1", "b.py": large, "c.py": "1"}, {"a.py": "2", "b.py": "2", "c.py": "2"}
    )
    assert versions(tmp_path / "r") == [("a.py", b"1", b"2"), ("c.py", b"1", b"2")]


def test_missing_contents_are_left_out(tmp_path):
    folder = make_history(tmp_path / "r", {"a.py": "1", "b.py": "2"}, {"a.py": "3", "b.py": "4"})
    blob = git(folder, "rev-parse", "HEAD~:a.py")
    (folder / "objects" / blob[:2] / blob[2:]).unlink()
    assert versions(folder) == [("b.py", b"2", b"4")]


def test_missing_contents_are_an_error_only_for_renames(tmp_path):
    before = {"a.py": BIG, "b.py": "1"}
    folder = make_history(tmp_path / "r", before, {"a.py": None, "c.py": BIG + "x", "b.py": "2"})
    blob = git(folder, "rev-parse", "HEAD~:a.py")
    (folder / "objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(InputError, match=f"unable to read {blob}"):
        changes(folder)
    assert [change.path for change in changes(folder, renames=False)] == ["b.py"]


def test_shallow_clone_is_read_to_its_end(tmp_path):
    make_history(tmp_path / "r", {"a.py": "1"}, {"a.py": "2"}, {"a.py": "3"})
    git(tmp_path, "clone", "--quiet", "--depth=2", f"file://{tmp_path}/r", "shallow")
    assert versions(tmp_path / "shallow") == [("a.py", b"2", b"3")]


def test_repository_cannot_run_commands(tmp_path, monkeypatch):
    """Neither the settings of the repository, the user and the system nor hooks make git run a command."""
    folder = make_history(
        tmp_path / "r",
        {"a.py": BIG, ".gitattributes": "* diff=d filter=d merge=d"},
        {"a.py": None, "b.py": BIG + "x"},
    )
    run = tmp_path / "run"
    command = tmp_path / "command"
    command.write_text(f"#!/bin/sh\ntouch {run}\n")
    command.chmod(0o755)
    settings = (
        f'[diff "d"]\ntextconv = {command}\ncommand = {command}\n[diff]\nexternal = {command}\n'
        f'[filter "d"]\nsmudge = {command}\nclean = {command}\nprocess = {command}\nrequired = true\n'
        f"[core]\npager = {command}\neditor = {command}\nsshCommand = {command}\ngitProxy = {command}\n"
        f"fsmonitor = {command}\nhooksPath = {folder}/hooks\nalternateRefsCommand = {command}\nbare = true\n"
        f"[credential]\nhelper = {command}\n[log]\nshowSignature = true\n[gpg]\nprogram = {command}\n"
        f"[alias]\nrev-list = !{command}\ndiff-tree = !{command}\ncat-file = !{command}\n[pager]\n"
        f'rev-list = {command}\n[remote "o"]\nurl = ext::{command}\npromisor = true\n'
        "[extensions]\npartialClone = o\n"
    )
    (folder / "included").write_text(settings)
    (folder / "config").write_text(f"{settings}[include]\npath = included\n")
    (folder / "info" / "attributes").write_text("* diff=d filter=d\n")
    for hook in ("post-checkout", "post-index-change", "reference-transaction", "pre-auto-gc"):
        (folder / "hooks" / hook).write_text(command.read_text())
        (folder / "hooks" / hook).chmod(0o755)
    (tmp_path / ".gitconfig").write_text(settings)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", str(folder / "config"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", str(command))
    monkeypatch.setenv("GIT_PAGER", str(command))
    assert len(versions(folder)) == 1
    # A content that is missing is not fetched from the remote.
    blob = git(tmp_path, "hash-object", "--stdin", input=BIG.encode())
    (folder / "objects" / blob[:2] / blob[2:]).unlink()
    assert len(changes(folder, renames=False)) == 0
    with pytest.raises(InputError):
        changes(folder)
    assert not run.exists()


def test_a_repository_cannot_rewrite_its_history(tmp_path):
    """Replaced objects, grafts and objects in other repositories are ignored or refused."""
    folder = make_history(tmp_path / "r", {"a.py": "1"}, {"a.py": "2"}, {"a.py": "3"})
    expected = versions(folder)
    first, second, third = git(folder, "log", "--reverse", "--format=%H").split()
    git(folder, "replace", second, third)
    (folder / "info" / "grafts").write_text(f"{third} {first}\n")
    assert versions(folder) == expected == [("a.py", b"1", b"2"), ("a.py", b"2", b"3")]
    (folder / "objects" / "info" / "alternates").write_text("/somewhere/objects\n")
    with pytest.raises(InputError, match="has objects in other repositories"):
        versions(folder)


def test_odd_commits_are_read(tmp_path):
    """Dates outside of time, unknown encodings, and names with control characters."""
    stream = commit_stream({"a.py": "1", '"\\033[31m\\n.py"': "1"}, 1)
    stream += commit_stream({"a.py": "2", '"\\033[31m\\n.py"': "2"}, 2).replace(
        b" 2 +0000", b" 99999999999 +1400"
    )
    stream = stream.replace(b"data 0\nM", b"encoding none\ndata 2\n\xff\xfe\nM")
    import_history(tmp_path / "r", stream)
    assert sorted(versions(tmp_path / "r")) == [("\x1b[31m\n.py", b"1", b"2"), ("a.py", b"1", b"2")]


def test_git_that_is_silent_is_ended(tmp_path, monkeypatch):
    """Trees of nothing but empty trees: git would walk 10**12 of them, and print nothing."""
    folder = make_history(tmp_path / "r", {"a.py": "1"})
    tree = git(folder, "mktree", "-z", input=b"")
    for _ in range(12):
        rows = "".join(f"040000 tree {tree}\t{n}\0" for n in range(10))
        tree = git(folder, "mktree", "-z", input=rows.encode())
    monkeypatch.setattr(git_repository, "_MOST_SILENCE", 0.3)
    repository = open_repository(find_repository(folder, folder))
    with pytest.raises(RepositoryLimitError, match=r"git gave no answer in 0\.3 seconds"):
        repository.files(tree)
    repository = open_repository(find_repository(folder, folder), seconds=0.2)
    with pytest.raises(RepositoryLimitError, match="git takes too long"):
        repository.files(tree)


def test_damaged_history_is_an_error(tmp_path):
    folder = make_history(tmp_path / "r", {"a.py": "1"}, {"a.py": "2"})
    (folder / "refs" / "heads" / "main").write_text("0123456789" * 4 + "\n")
    with pytest.raises(InputError, match=f"{folder}: fatal: bad object 0123456789"):
        changes(folder)


def test_commit_with_too_many_files_is_an_error(tmp_path, monkeypatch):
    files = [f"{n}.py" for n in range(20)]
    folder = make_history(tmp_path / "r", dict.fromkeys(files, "1"), dict.fromkeys(files, "2"))
    monkeypatch.setattr(git_history, "MOST_FILES", 19)
    with pytest.raises(InputError, match="a commit of more than 19 files"):
        changes(folder)


def test_exponentially_many_files_do_not_fill_the_memory(tmp_path, monkeypatch):
    """A small repository describes 10**8 changed files; git must not list all of them in memory."""
    git(tmp_path, "init", "--bare", ".")

    def commit(content, *parent):
        blob = git(tmp_path, "hash-object", "-w", "--stdin", input=content)
        row = f"100644 blob {blob}"
        for _ in range(8):
            rows = "".join(f"{row}\tf{n}.py\0" for n in range(10))
            row = f"040000 tree {git(tmp_path, 'mktree', '-z', input=rows.encode())}"
        return git(tmp_path, "commit-tree", "-m", "bomb", row.split()[-1], *parent)

    (tmp_path / "HEAD").write_text(commit(b"2", "-p", commit(b"1")))
    monkeypatch.setattr(git_repository, "_MOST_MEMORY", 100 << 20)
    with pytest.raises(InputError, match=r"(?i)out of memory"):
        changes(tmp_path)
