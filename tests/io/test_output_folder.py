"""Output folders: the files of the user survive checks, additions, replacements, failures and kills."""

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from simllm.errors import InputError
from simllm.io import output_folder
from simllm.io.output_folder import OutputFolder
from simllm.llm.records import add_to_folder


def contents(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def write(folder, **texts):
    """Write a folder of text files, in the way in which commands replace their output folders."""
    with OutputFolder(folder, "results").replacing() as partial:
        for name, text in texts.items():
            (partial / name).parent.mkdir(exist_ok=True)
            (partial / name).write_text(text)


def test_writes_a_new_folder_without_leftovers(tmp_path):
    write(tmp_path / "deep" / "out", result="1")
    assert contents(tmp_path / "deep" / "out").keys() == {"result", ".simllm"}
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["out"]


def test_fills_an_empty_folder(tmp_path):
    (tmp_path / "out").mkdir()
    write(tmp_path / "out", result="1")
    assert (tmp_path / "out" / "result").read_text() == "1"


def test_refuses_a_folder_of_the_user(tmp_path):
    out = tmp_path / "out"
    (out / "inner").mkdir(parents=True)
    (out / "inner" / "thesis.txt").write_text("years of work")
    before = contents(tmp_path)
    with pytest.raises(InputError, match=r"out: holds files that simllm did not write \(no \.simllm there\)"):
        write(out, result="1")
    assert contents(tmp_path) == before


def test_replaces_its_own_files_and_keeps_those_of_the_user(tmp_path):
    out = tmp_path / "out"
    write(out, result="1", stale="old")
    (out / "notes").mkdir()
    (out / "notes" / "mine.txt").write_text("keep me")
    (out / "link").symlink_to("/etc")
    write(out, result="2")
    assert contents(out).keys() == {"result", ".simllm", "notes/mine.txt"}
    assert (out / "result").read_text() == "2"
    assert (out / "link").is_symlink()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_keeps_empty_folders_of_the_user_and_removes_its_own(tmp_path):
    out = tmp_path / "out"
    write(out, **{"pages/one": "1", "old/page": "1"})
    (out / "mine" / "deeper").mkdir(parents=True)
    (out / "pages" / "mine").mkdir()
    (out / "old" / "mine").mkdir()
    write(out, **{"pages/one": "2", "mine/two": "2"})
    folders = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_dir()}
    assert folders == {"pages", "mine", "mine/deeper", "pages/mine", "old", "old/mine"}
    write(out, **{"one": "3"})
    folders = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_dir()}
    assert folders == {"mine", "mine/deeper", "pages", "pages/mine", "old", "old/mine"}
    assert contents(out).keys() == {"one", ".simllm"}


def test_remembers_the_empty_folders_that_it_wrote(tmp_path):
    for names in (["a/b", "c"], ["c"]):
        with OutputFolder(tmp_path / "out", "results").replacing() as partial:
            for name in names:
                (partial / name).mkdir(parents=True)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"c", ".simllm"}


def test_refuses_a_file_at_the_place_of_an_empty_folder_of_the_user(tmp_path):
    write(tmp_path / "out", result="1")
    (tmp_path / "out" / "table").mkdir()
    with pytest.raises(InputError, match="table: was not written by simllm; move it away"):
        write(tmp_path / "out", table="2")
    assert (tmp_path / "out" / "table").is_dir()


def test_keeps_permissions_and_gives_no_setuid_bit(tmp_path):
    out = tmp_path / "out"

    def write_with_tool(mode):
        with OutputFolder(out, "results").replacing() as partial:
            for name in ("result", "inner/tool"):
                (partial / name).parent.mkdir(exist_ok=True)
                (partial / name).write_text(name)
            (partial / "inner" / "tool").chmod(mode)

    def mode(name):
        return (out / name).stat().st_mode & 0o7777

    write_with_tool(0o6755)
    assert mode("inner/tool") == 0o755
    (out / "mine").mkdir(mode=0o711)
    out.chmod(0o700)
    (out / "inner").chmod(0o750)
    (out / "result").chmod(0o600)
    write_with_tool(0o644)
    assert (mode("."), mode("inner"), mode("result"), mode("mine")) == (0o700, 0o750, 0o600, 0o711)
    assert mode("inner/tool") == 0o644


@pytest.mark.parametrize("name", ["n" * 255, "名" * 85], ids=["ASCII", "three bytes a character"])
def test_replaces_a_folder_with_the_longest_name(tmp_path, name):
    for text in "12":
        write(tmp_path / name, result=text)
    assert (tmp_path / name / "result").read_text() == "2"
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_refuses_to_replace_a_file_that_the_user_added(tmp_path):
    out = tmp_path / "out"
    write(out, result="1")
    (out / "table").write_text("mine")
    before = contents(tmp_path)
    with pytest.raises(InputError, match="table: was not written by simllm; move it away"):
        write(out, result="2", table="theirs")
    assert contents(tmp_path) == before


@pytest.mark.parametrize("keep", ["table/keep.txt", "inner"], ids=["a folder", "a file"])
def test_refuses_to_replace_a_folder_or_file_of_the_user_by_the_other(tmp_path, keep):
    """The user's folder has the name of a new file, or the user's file has the name of a new folder."""
    out = tmp_path / "out"
    write(out, result="1")
    (out / keep).parent.mkdir(exist_ok=True)
    (out / keep).write_text("mine")
    before = contents(tmp_path)
    with pytest.raises(InputError, match=f"{keep}: was not written by simllm; move it away"):
        write(out, **{"table": "theirs", "inner/result": "theirs"})
    assert contents(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_refuses_to_replace_a_file_that_the_user_changed(tmp_path):
    out = tmp_path / "out"
    write(out, result="1", table="a")
    (out / "table").write_text("edited")
    before = contents(tmp_path)
    with pytest.raises(InputError, match="table: was changed after simllm wrote it; move it away"):
        write(out, result="2", table="b")
    assert contents(tmp_path) == before
    (out / "table").unlink()
    write(out, result="2", table="b")
    OutputFolder(out).write("table", "written later by simllm")
    write(out, result="3", table="c")
    assert (out / "table").read_text() == "c"


def test_damaged_files_are_replaced_where_users_do_not_edit(tmp_path):
    for text in ("1", "2"):
        with OutputFolder(tmp_path / "state", "a state").replacing(keep_edits=False) as partial:
            (partial / "weights").write_text(text)
        (tmp_path / "state" / "weights").write_text("damaged")


def test_refuses_to_replace_other_content(tmp_path):
    """A command does not delete what another command wrote, such as the recorded answers of a study."""
    OutputFolder(tmp_path / "run", "a repair run").own()
    OutputFolder(tmp_path / "run").write("replies.jsonl", "paid for")
    before = contents(tmp_path)
    with pytest.raises(InputError, match="run: holds a repair run; name another folder for results"):
        write(tmp_path / "run", result="1")
    with pytest.raises(InputError, match="run: holds a repair run; name another folder for score tables"):
        OutputFolder(tmp_path / "run", "score tables").own()
    assert contents(tmp_path) == before


def test_replaces_a_folder_whose_marker_does_not_say_what_it_holds(tmp_path):
    write(tmp_path / "out", result="1")
    (tmp_path / "out" / ".simllm").write_text('{"written_by": "simllm", "files": ["result"]}')
    write(tmp_path / "out", result="2")
    assert (tmp_path / "out" / "result").read_text() == "2"


@pytest.mark.parametrize(
    "name", ["out.old", "out.partial", "out.parts", ".out.x.partial", ".out.x.old", ".out.lock"]
)
def test_keeps_siblings_that_look_like_its_own(tmp_path, name):
    (tmp_path / name).mkdir() if "lock" not in name else (tmp_path / name).write_text("mine")
    if "lock" not in name:
        (tmp_path / name / "mine").write_text("mine")
    before = contents(tmp_path)
    write(tmp_path / "out", result="1")
    write(tmp_path / "out", result="2")
    assert contents(tmp_path).items() >= before.items()


def test_failure_leaves_the_folder_unchanged(tmp_path):
    write(tmp_path / "out", result="1")
    before = contents(tmp_path)
    with pytest.raises(TypeError, match="data must be str"):
        write(tmp_path / "out", result="2", other=None)
    assert contents(tmp_path) == before


def test_link_to_a_folder_is_kept(tmp_path):
    write(tmp_path / "real", result="1")
    (tmp_path / "link").symlink_to("real")
    write(tmp_path / "link", result="2")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "result").read_text() == "2"


def test_refuses_a_mount_point(tmp_path, monkeypatch):
    monkeypatch.setattr(os.path, "ismount", lambda path: path == tmp_path / "volume")
    with (
        pytest.raises(InputError, match="volume: is a mount point"),
        OutputFolder(tmp_path / "volume", "results").replacing(),
    ):
        pass


def test_refuses_a_loop_of_links_a_file_and_the_current_folder(tmp_path, monkeypatch):
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").write_text("mine")
    for name in ("loop", "loop/inner", "file", "file/inner"):
        with pytest.raises(InputError):
            write(tmp_path / name, result="1")
    assert (tmp_path / "file").read_text() == "mine"
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(InputError, match="is the current folder"):
        write(Path(), result="1")


@pytest.mark.parametrize(
    "marker",
    [
        "",
        "{",
        "[]",
        '{"files": ["../thesis.txt"]}',
        '{"files": ["/etc/passwd"]}',
        '{"files": ["a\\u0000b"]}',
        '{"files": ["."]}',
        "[" * 100_000,
    ],
    ids=range(8),
)
def test_invalid_marker_is_ignored(tmp_path, marker):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / ".simllm").write_text(marker)
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match="did not write"):
        write(tmp_path / "out", result="1")
    OutputFolder(tmp_path / "out").remove()
    assert (tmp_path / "thesis.txt").exists()


WRITER = """
import sys
from pathlib import Path
from simllm.io.output_folder import OutputFolder
with OutputFolder(Path(sys.argv[1]), "results").replacing() as partial:
    (partial / "result").write_text(sys.argv[2])
    if len(sys.argv) > 3:
        Path(sys.argv[3]).touch()
        input()
"""


def start(*arguments):
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, *map(str, arguments)],
        stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def wait_for(file):
    deadline = time.monotonic() + 30
    while not file.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_second_writer_is_refused_and_killed_writer_is_cleaned_up(tmp_path):
    out = tmp_path / "out"
    write(out, result="1")
    first = start(out, "2", tmp_path / "ready")
    wait_for(tmp_path / "ready")
    with pytest.raises(InputError, match="out: another process is writing there"):
        write(out, result="3")
    first.kill()
    first.communicate()
    assert (out / "result").read_text() == "1"
    write(out, result="3")
    (tmp_path / "ready").unlink()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert (out / "result").read_text() == "3"


@pytest.mark.parametrize("call", range(5))
def test_kill_during_a_replacement_loses_nothing(tmp_path, monkeypatch, call):
    out = tmp_path / "out"
    write(out, result="1", stale="old")
    (out / "mine").write_text("keep me")
    (out / "mine too" / "empty").mkdir(parents=True)
    calls = 0

    def killed(*arguments):
        nonlocal calls
        calls += 1
        if calls > call:
            raise KeyboardInterrupt
        return rename(*arguments)

    rename = type(out).rename
    monkeypatch.setattr(type(out), "rename", killed)
    # The killed process does not clean up either.
    monkeypatch.setattr(output_folder.shutil, "rmtree", lambda *_, **__: None)
    with contextlib.suppress(KeyboardInterrupt):
        write(out, result="2")
    monkeypatch.undo()
    write(out, result="3")
    assert contents(out).keys() == {"result", "mine", ".simllm"}
    assert (out / "mine").read_text() == "keep me"
    assert (out / "mine too" / "empty").is_dir()
    assert (out / "result").read_text() == "3"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_remove_deletes_only_files_that_simllm_wrote(tmp_path):
    write(tmp_path / "out", result="1")
    (tmp_path / "out" / "mine").write_text("keep me")
    OutputFolder(tmp_path / "out").remove()
    assert contents(tmp_path / "out").keys() == {"mine", ".simllm"}
    (tmp_path / "out" / "mine").unlink()
    OutputFolder(tmp_path / "out").remove()
    assert not (tmp_path / "out").exists()


def test_output_must_not_overlap_its_sources(tmp_path):
    (tmp_path / "source" / "inner").mkdir(parents=True)
    for output in ("source", "source/out", ".", "source/inner/.."):
        with pytest.raises(InputError, match="name another folder"):
            OutputFolder(tmp_path / output).check_apart([tmp_path / "source"])
    OutputFolder(tmp_path / "other").check_apart([tmp_path / "source"])
    OutputFolder(tmp_path / "source-2").check_apart([tmp_path / "source"])


def test_own_marks_new_and_empty_folders_and_refuses_others(tmp_path):
    for name in ("new", "empty"):
        (tmp_path / "empty").mkdir(exist_ok=True)
        OutputFolder(tmp_path / name, "results").own()
        OutputFolder(tmp_path / name, "results").own()
        OutputFolder(tmp_path / name).write("result", "1")
        OutputFolder(tmp_path / name).write("result", "2")
        assert (tmp_path / name / "result").read_text() == "2"
    (tmp_path / "new" / "mine").write_text("keep me")
    with pytest.raises(InputError, match="mine: was not written by simllm"):
        OutputFolder(tmp_path / "new").write("mine", "x")
    with pytest.raises(InputError, match="did not write"):
        OutputFolder(tmp_path, "results").own()


def test_nothing_is_written_through_a_link(tmp_path):
    """A stranger's folder may list a file that is a link to a file of the user, or to none yet."""
    (tmp_path / "mine").write_text("keep me, without a line end")
    OutputFolder(tmp_path / "out", "results").own()
    OutputFolder(tmp_path / "out").reserve(["result", "log.jsonl"])
    (tmp_path / "out" / "result").symlink_to(tmp_path / "none-yet")
    (tmp_path / "out" / "log.jsonl").symlink_to(tmp_path / "mine")
    for write in (
        lambda: OutputFolder(tmp_path / "out").write("result", "1"),
        lambda: OutputFolder(tmp_path / "out").reserve(["log.jsonl"]),
        lambda: add_to_folder(tmp_path / "out", "log.jsonl"),
    ):
        with pytest.raises(InputError, match="is a link; writing there would change another file"):
            write()
    assert (tmp_path / "mine").read_text() == "keep me, without a line end"
    assert not (tmp_path / "none-yet").exists()


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_a_marker_without_an_end_is_none(tmp_path, kind):
    if kind == "pipe":
        os.mkfifo(tmp_path / ".simllm")
    else:
        (tmp_path / ".simllm").symlink_to("/dev/zero")
    with pytest.raises(InputError, match="holds files that simllm did not write"):
        OutputFolder(tmp_path).check()
