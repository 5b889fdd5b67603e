"""`simllm mine satd`: mining repayments of technical debt from git, resuming, and checks by a model."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from simllm.code.satd_mining import mining
from tests.chat_server import chat_server
from tests.command import process, run
from tests.conftest import ROOT
from tests.histories import commit_stream, git, import_history, make_history

pytestmark = pytest.mark.slow  # many processes; the quick lane runs the documented pages

FIELDS = [
    "id",
    "repository",
    "commit",
    "date",
    "created_commit",
    "created_date",
    "lifespan_days",
    "path",
    "line",
]
FIELDS += ["function", "language", "comment", "source", "reference", "split"]


def function(name, comment="", body="return 1"):
    """Return the code of a Python function."""
    lines = [f"def {name}():", *([f"    # {comment}"] if comment else []), f"    {body}"]
    return "\n".join(lines) + "\n"


def repaid(name, comment, body="return 2"):
    """Return the code of a function before and after its debt comment is removed and its body changed."""
    return function(name, comment), function(name, body=body)


LONG = " + ".join(["1"] * 600)
# For each file: its content before and after a commit.
CHANGES = {
    "kept.py": repaid("kept", "TODO: return two"),
    "two_words.py": repaid("two_words", "TODO: two"),
    "module.py": ("# TODO: add some code\n", "x = 1\n"),
    "gone.py": (function("gone", "TODO: remove this function"), function("other")),
    "unchanged.py": (function("unchanged", "TODO: return two"), function("unchanged")),
    "two_debts.py": repaid("two_debts", "TODO: return two\n    print()\n    # FIXME: return 3"),
    "still.py": (function("still", "TODO: return two"), function("still", "TODO: return three", "return 2")),
    "kept_again.py": repaid("kept", "TODO: return two"),
    "umlaut.py": repaid("umlaut", "TODO: return zw\u00f6lf"),
    "long.py": repaid("long", "TODO: return the sum", f"return {LONG}"),
    "not_too_long.py": repaid("not_too_long", "TODO: return the sum", f"return {LONG[: 4 * 500]}1"),
    "moved.py": (
        function("moved", "TODO: return two"),
        function("moved", body="return 2") + "# TODO: return two\n",
    ),
    "notes.txt": ("# TODO: write more notes\n", "x\n"),
}
FUNNEL = """\
simllm: 1 repository
        12  comments that admit debt are deleted
        11  have three words or more on that line
        10  stand in or above a function
         9  the function lives on
         8  the function's code changes
         6  no other such comment before
         5  no such comment after
         4  no duplicates
         3  ASCII
         2  at most 1,024 tokens each
simllm: train 0, validation 2, test 0
"""


@pytest.fixture
def rules(tmp_path):
    """Make a git history of commits that fulfil all rules for repayments, and commits that break a rule."""
    before = {path: code for path, (code, _) in CHANGES.items()}
    return make_history(
        tmp_path / "all" / "rules", before, *({path: new} for path, (_, new) in CHANGES.items())
    )


def read(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


def mine(folder, *options, out="items.jsonl", **more):
    return run("mine", "satd", folder / "all", "-o", folder / out, *options, **more)


def test_items_and_funnel(rules, tmp_path):
    done = process("mine", "satd", tmp_path / "all", "-o", tmp_path / "items.jsonl")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", FUNNEL)
    items = read(tmp_path / "items.jsonl")
    assert [item["path"] for item in items] == ["kept.py", "not_too_long.py"]
    assert all(list(item) == FIELDS for item in items)
    commits = git(rules, "log", "--reverse", "--format=%H").split()
    before, after = CHANGES["kept.py"]
    assert re.fullmatch("[0-9a-f]{16}", items[0].pop("id"))
    assert items[0] == {
        "repository": "rules", "commit": commits[1], "date": "1970-01-01T00:00:02Z",
        "created_commit": commits[0], "created_date": "1970-01-01T00:00:01Z", "lifespan_days": 0.0,
        "path": "kept.py", "line": 2, "function": "kept",
        "language": "python", "comment": "# TODO: return two", "source": before.rstrip(),
        "reference": after.rstrip(), "split": "validation",
    }  # fmt: skip
    assert sorted(path.name for path in tmp_path.iterdir()) == ["all", "items.jsonl"]


def test_items_can_be_scored(rules, tmp_path):
    mine(tmp_path)
    rows = [item | {"candidate": item["reference"]} for item in read(tmp_path / "items.jsonl")]
    (tmp_path / "scored.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = run("score", "--jsonl", tmp_path / "scored.jsonl", "--metrics", "lemod,exact-match", "-f", "json")
    assert json.loads(done.stdout)["mean lemod"] == json.loads(done.stdout)["mean exact-match"] == 1


def test_same_repayment_in_another_repository_is_a_duplicate(tmp_path):
    before, after = repaid("f", "TODO: return two")
    for name in ("b", "a"):
        make_history(tmp_path / "all" / name, {"a.py": before}, {"a.py": after})
    assert "         1  no duplicates\n" in mine(tmp_path).stderr
    assert [item["repository"] for item in read(tmp_path / "items.jsonl")] == ["a"]


def test_debt_that_comes_back_is_repaid_once(tmp_path):
    before, after = repaid("f", "TODO: return two")
    make_history(tmp_path / "all", *({"a.py": code} for code in (before, after, before, after)))
    assert "         1  no duplicates\n" in mine(tmp_path).stderr
    [item] = read(tmp_path / "items.jsonl")
    assert item["commit"] == git(tmp_path / "all", "rev-parse", "HEAD~2")


def test_quiet_run_prints_nothing(rules, tmp_path):
    done = mine(tmp_path, "--quiet")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_history_without_repayments_gives_an_empty_file(tmp_path):
    make_history(tmp_path / "all" / "r", {"a.py": function("f")})
    assert mine(tmp_path).returncode == 0
    assert (tmp_path / "items.jsonl").read_text() == ""


def test_unreadable_repositories_are_left_out_with_a_warning(rules, tmp_path):
    git(tmp_path, "init", "--bare", tmp_path / "all" / "empty")
    damaged = make_history(tmp_path / "all" / "damaged", {"a.py": "1"})
    (damaged / "refs" / "heads" / "main").write_text("0123456789" * 4 + "\n")
    done = mine(tmp_path)
    assert done.returncode == 0
    assert f"warning: {damaged}: fatal: bad object 0123" in done.stderr
    assert f"warning: {tmp_path / 'all' / 'empty'}: HEAD points to no commit; left out\n" in done.stderr
    assert "simllm: 3 repositories, 2 left out\n" in done.stderr
    assert len(read(tmp_path / "items.jsonl")) == 2


@pytest.mark.parametrize("count", [1, 2])
def test_unreadable_repositories_alone_are_an_error(tmp_path, count):
    for name in ["a", "b"][:count]:
        git(tmp_path, "init", "--bare", tmp_path / "all" / name)
    (tmp_path / "items.jsonl").write_text("years of work")
    done = mine(tmp_path, "--overwrite", "-q")
    more = " and 1 more" if count == 2 else ""
    message = f"{tmp_path / 'all' / 'a'}{more}: no repository could be read"
    assert (done.returncode, done.stderr) == (2, f"simllm: error: {message}\n")
    assert (tmp_path / "items.jsonl").read_text() == "years of work"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["all", "items.jsonl"]


def test_output_inside_a_repository_is_refused(rules, tmp_path):
    head = (rules / "HEAD").read_bytes()
    (tmp_path / "link").symlink_to(rules)
    for out in ("all/rules/HEAD", "all/rules/new.jsonl", "link/HEAD"):
        for options in ((), ("--overwrite",)):
            done = mine(tmp_path, *options, out=out)
            assert done.returncode == 2
            assert done.stderr.startswith(
                f"simllm: error: {tmp_path / out}: is the source {rules}, inside it"
            )
            assert done.stderr.count("\n") == 1
    assert (rules / "HEAD").read_bytes() == head
    assert not (rules / "new.jsonl").exists()


def test_output_inside_the_folder_of_a_work_tree_is_refused(rules, tmp_path):
    git(tmp_path, "clone", "--quiet", rules, tmp_path / "all" / "clone")
    for out in ("all/clone/kept.py", "all/clone/.git/config"):
        assert "clone, inside it or above it" in mine(tmp_path, "--overwrite", out=out).stderr
    git(tmp_path / "all" / "clone", "diff", "--exit-code")


def test_output_beside_repositories_is_allowed(rules, tmp_path):
    assert mine(tmp_path, out="all/items.jsonl").returncode == 0
    assert len(read(tmp_path / "all" / "items.jsonl")) == 2


def test_partial_clone_is_mined_without_renames(tmp_path):
    before, after = repaid("f", "TODO: return two")
    text = "".join(f"line {n}\n" for n in range(50))
    folder = make_history(
        tmp_path / "all", {"a.py": before, "b.py": text}, {"a.py": after, "b.py": None, "c.py": text + "x"}
    )
    blob = git(folder, "rev-parse", "HEAD~:b.py")
    (folder / "objects" / blob[:2] / blob[2:]).unlink()
    done = mine(tmp_path)
    assert done.stderr.startswith("simllm: 1 repository\n         1  comments")
    assert len(read(tmp_path / "items.jsonl")) == 1


BAD = [
    (("all",), "expected -o FILE, to write the items to"),
    (("all", "-o", "old.jsonl"), "old.jsonl: exists already; --overwrite replaces it"),
    (("all", "-o", "none/items.jsonl"), "none/items.jsonl: cannot be written (no such folder)"),
    (("all", "-o", "all"), "all: cannot be written (it is a folder)"),
    (("all", "-o", "/dev/null"), "/dev/null: expected a file; the items cannot go to a pipe or a device"),
    (("none", "-o", "items.jsonl"), "none: expected a folder of git repositories"),
    (("old.jsonl", "-o", "items.jsonl"), "old.jsonl: expected a folder of git repositories"),
    (("empty", "-o", "items.jsonl"), "empty: no git repository in it"),
    (("all", "-o", "items.jsonl", "--model", "judge"), "--model goes with --judge"),
    (
        ("all", "-o", "items.jsonl", "--judge", "host"),
        "host: expected an address such as http://localhost:8000/v1",
    ),
]


@pytest.mark.parametrize(("arguments", "message"), BAD)
def test_bad_input_gives_one_line(rules, tmp_path, arguments, message):
    (tmp_path / "old.jsonl").write_text("years of work")
    (tmp_path / "empty").mkdir()
    done = run("mine", "satd", *arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"simllm: error: {message}\n")
    assert (tmp_path / "old.jsonl").read_text() == "years of work"
    assert not (tmp_path / "items.jsonl").exists()


def test_missing_git_is_an_error(rules, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert mine(tmp_path).stderr == "simllm: error: git is not installed\n"


def test_overwrite_replaces_an_existing_file(rules, tmp_path):
    (tmp_path / "items.jsonl").write_text("old")
    assert mine(tmp_path, "--overwrite").returncode == 0
    assert len(read(tmp_path / "items.jsonl")) == 2


def test_user_file_named_like_the_partial_file_is_kept(rules, tmp_path):
    (tmp_path / "items.jsonl.partial").write_text("mine")
    done = mine(tmp_path)
    assert done.returncode == 2
    assert "items.jsonl.partial: was not written by simllm" in done.stderr
    assert (tmp_path / "items.jsonl.partial").read_text() == "mine"


def test_help_shows_examples():
    for command in (("mine",), ("mine", "satd")):
        assert "\n  simllm mine satd my/repositories" in run(*command, "--help").stdout
    assert "FOLDER" in run("info", "--help").stdout.partition("--model")[2][:20]


class StoppedError(Exception):
    """Exception that stops a run, as a kill does."""


@pytest.fixture
def stopped_run(rules, tmp_path, monkeypatch):
    """Start a run that is stopped after the first of two repositories; return its folder."""
    before, after = repaid("g", "FIXME: return two")
    make_history(tmp_path / "all" / "second", {"g.py": before}, {"g.py": after})
    mine_repository = mining._mine_repository

    def stop(repository, *rest):
        if repository.name == "second":
            raise StoppedError
        return mine_repository(repository, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(mining, "_mine_repository", stop)
        with pytest.raises(StoppedError):
            mine(tmp_path)
    assert not (tmp_path / "items.jsonl").exists()
    return tmp_path


def test_stopped_run_is_continued_by_the_same_command(stopped_run, monkeypatch):
    mined = []
    mine_repository = mining._mine_repository
    monkeypatch.setattr(
        mining,
        "_mine_repository",
        lambda r, *rest: mined.append(r.name) or mine_repository(r, *rest),
    )
    done = mine(stopped_run)
    assert mined == ["second"]
    assert not (stopped_run / "items.jsonl.partial").exists()
    whole = mine(stopped_run, out="whole.jsonl")
    assert (stopped_run / "items.jsonl").read_bytes() == (stopped_run / "whole.jsonl").read_bytes()
    assert len(read(stopped_run / "items.jsonl")) == 3
    assert done.stderr == whole.stderr


@pytest.mark.parametrize("change", ["commit", "repository", "removed"])
def test_run_with_other_repositories_is_not_continued(stopped_run, change):
    if change == "commit":
        make_history(stopped_run / "new", {"a.py": "1"})
        git(stopped_run / "all" / "rules", "fetch", stopped_run / "new", "+main:main")
    elif change == "repository":
        make_history(stopped_run / "all" / "a", {"a.py": "1"})
    else:
        shutil.rmtree(stopped_run / "all" / "rules")
    before = (stopped_run / "items.jsonl.partial").read_bytes()
    done = mine(stopped_run)
    assert done.returncode == 2
    assert "items.jsonl.partial: begun with other repositories or commits" in done.stderr
    assert (stopped_run / "items.jsonl.partial").read_bytes() == before


def test_output_that_appears_during_the_run_is_kept(rules, tmp_path, monkeypatch):
    mine_repository = mining._mine_repository

    def late(repository, *rest):
        (tmp_path / "items.jsonl").write_text("theirs")
        return mine_repository(repository, *rest)

    monkeypatch.setattr(mining, "_mine_repository", late)
    assert mine(tmp_path).returncode == 2
    assert (tmp_path / "items.jsonl").read_text() == "theirs"


def test_ctrl_c_says_how_to_continue(rules, tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(mining, "_mine_repository", interrupt)
    done = mine(tmp_path)
    assert (done.returncode, done.stderr) == (130, "simllm: interrupted (the same command continues)\n")


GIT = """#!/bin/sh
echo "$GIT_OBJECT_DIRECTORY $*" >> "{log}"
case "$GIT_OBJECT_DIRECTORY $*" in
    */second/objects*\\ log\\ *) [ -e "{hold}" ] && exec sleep 60;;
esac
exec {git} "$@"
"""


def test_killed_run_is_resumed_to_the_same_bytes(stopped_run):
    """The process is killed at the second of two repositories, where a fake git makes it wait."""
    folder = stopped_run
    (folder / "items.jsonl.partial").unlink()
    fake = folder / "bin" / "git"
    fake.parent.mkdir()
    fake.write_text(GIT.format(log=folder / "log", hold=folder / "hold", git=shutil.which("git")))
    fake.chmod(0o755)
    environment = {**os.environ, "PATH": f"{fake.parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "simllm", "mine", "satd", "all", "-o", "items.jsonl"]
    (folder / "hold").touch()
    running = subprocess.Popen(command, cwd=folder, env=environment, start_new_session=True)
    deadline = time.monotonic() + 60
    while not ((folder / "log").exists() and "second/objects" in (folder / "log").read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    assert (folder / "items.jsonl.partial").exists()
    assert not (folder / "items.jsonl").exists()
    (folder / "hold").unlink()
    (folder / "log").unlink()
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    assert "rules/objects" not in (folder / "log").read_text()
    whole = mine(folder, out="whole.jsonl")
    assert (folder / "items.jsonl").read_bytes() == (folder / "whole.jsonl").read_bytes()
    assert done.stderr == whole.stderr
    assert not list(folder.glob("*.partial"))


@pytest.fixture
def server():
    with chat_server() as server:
        yield server


ANSWERS = "items.jsonl.answers.jsonl"


def verdicts(done):
    """Return the judge's line of a finished run as a dictionary."""
    [line] = [line for line in done.stderr.splitlines() if line.startswith("simllm: judge: ")]
    pairs = (part.split() for part in line.removeprefix("simllm: judge: ").split(", "))
    return {verdict: int(count) for verdict, count in pairs}


def test_judge_keeps_only_changes_with_the_answer_yes(rules, tmp_path, server):
    server.reply = lambda prompt: "**Yes**, it does." if "not_too_long" in prompt else "No, yes."
    options = ("--judge", server.url, "--model", "judge-1")
    done = mine(tmp_path, *options, env={"OPENAI_API_KEY": "secret\n"})
    assert done.returncode == 0
    assert done.stderr == FUNNEL.replace(
        "simllm: train 0, validation 2",
        "         1  the model says that the change repays the debt\n"
        "simllm: judge: yes 1, no 1, unclear 0, failed 0\nsimllm: train 0, validation 1",
    )
    assert [item["function"] for item in read(tmp_path / "items.jsonl")] == ["not_too_long"]
    assert [body["model"] for _, _, body in server.requests] == ["judge-1"] * 2
    assert {headers["Authorization"] for _, headers, _ in server.requests} == {"Bearer secret"}
    assert {body["temperature"] for _, _, body in server.requests} == {0}
    prompts = "".join(body["messages"][0]["content"] for _, _, body in server.requests)
    assert all(code.rstrip() in prompts for code in (*CHANGES["kept.py"], "# TODO: return two"))
    answers = {row["function"]: (row["verdict"], row["reply"]) for row in read(tmp_path / ANSWERS)}
    assert answers == {"kept": ("no", "No, yes."), "not_too_long": ("yes", "**Yes**, it does.")}


@pytest.mark.parametrize("end", ["", "/", "/v1", "/v1/", "/v1/chat/completions"])
def test_addresses_of_the_judge(rules, tmp_path, server, end):
    assert mine(tmp_path, "--judge", server.url + end).returncode == 0
    assert {path for path, _, _ in server.requests} == {"/v1/chat/completions"}
    assert all("model" not in body for _, _, body in server.requests)


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ("no", "no"), ("", "unclear"), ("yesterday", "unclear"), ("Yes" * 2, "unclear"), ("I say yes", "yes"),
        ("<think>no?</think>\n\nyes", "yes"), ("Answer: yes", "yes"), ("Yes, as no error is left.", "yes"),
        ("1. The loop is gone.\n2. So is the bug.\n\nSo, yes", "yes"), ("<think>yes", "unclear"),
    ],
)  # fmt: skip
def test_answers_of_all_kinds_are_understood_and_kept(rules, tmp_path, server, answer, verdict):
    server.reply = lambda prompt: answer
    done = mine(tmp_path, "--judge", server.url)
    assert done.returncode == 0
    assert verdicts(done) == dict.fromkeys(("yes", "no", "unclear", "failed"), 0) | {verdict: 2}
    assert len(read(tmp_path / "items.jsonl")) == (2 if verdict == "yes" else 0)
    assert [row["reply"] for row in read(tmp_path / ANSWERS)] == [answer] * 2


def test_paid_answers_are_not_asked_for_again(rules, tmp_path, server):
    assert mine(tmp_path, "--judge", server.url).returncode == 0
    first = (tmp_path / "items.jsonl").read_bytes(), (tmp_path / ANSWERS).read_bytes()
    server.requests.clear()
    assert mine(tmp_path, "--judge", server.url, "--overwrite").returncode == 0
    assert not server.requests
    assert ((tmp_path / "items.jsonl").read_bytes(), (tmp_path / ANSWERS).read_bytes()) == first


def test_paid_answers_survive_a_kill(rules, tmp_path, server):
    held = threading.Event()
    server.reply = lambda prompt: held.wait(60) and "yes" if "not_too_long" in prompt else "yes"
    options = ("mine", "satd", tmp_path / "all", "-o", tmp_path / "items.jsonl", "--judge", server.url)
    command = [sys.executable, "-m", "simllm", *map(str, options)]
    running = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(ROOT)})
    record, deadline = tmp_path / ANSWERS, time.monotonic() + 60
    while not (record.exists() and b'"reply":"yes"' in record.read_bytes()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    running.kill()
    running.wait()
    held.set()
    server.requests.clear()
    assert run(*options).returncode == 0
    assert len(server.requests) == 1
    assert len(read(tmp_path / "items.jsonl")) == 2


def test_a_user_file_named_like_the_answers_is_kept(rules, tmp_path, server):
    for content in ("mine", '{"question": "mine"}\n'):
        (tmp_path / ANSWERS).write_text(content)
        done = mine(tmp_path, "--judge", server.url)
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1
        assert (tmp_path / ANSWERS).read_text() == content
    assert not server.requests


def too_long(prompt):
    message = json.dumps({"error": {"message": "maximum context length is 10 tokens"}}).encode()
    return (400, {}, message) if "not_too_long" in prompt else "yes"


def test_an_item_that_is_too_long_for_the_model_blocks_nothing(rules, tmp_path, server):
    server.reply = too_long
    done = mine(tmp_path, "--judge", server.url)
    assert done.returncode == 1
    assert verdicts(done) == {"yes": 1, "no": 0, "unclear": 0, "failed": 1}
    assert "warning: 1 item has no usable answer of the judge (beyond the context (HTTP" in done.stderr
    assert [item["function"] for item in read(tmp_path / "items.jsonl")] == ["kept"]
    server.requests.clear()
    assert mine(tmp_path, "--judge", server.url, "--overwrite").returncode == 1
    assert not server.requests
    server.reply = lambda prompt: "yes"
    assert mine(tmp_path, "--judge", server.url, "--overwrite", "--retry-failed").returncode == 0
    assert len(server.requests) == 1
    assert len(read(tmp_path / "items.jsonl")) == 2


def test_a_limited_rate_ends_nothing(rules, tmp_path, server):
    replies = [(429, {"Retry-After": "0.2"}, b""), (429, {"Retry-After": "0.2"}, b"")]
    server.reply = lambda prompt: replies.pop() if replies else "yes"
    assert mine(tmp_path, "--judge", server.url).returncode == 0
    assert len(read(tmp_path / "items.jsonl")) == 2


def test_a_lost_answer_is_asked_for_again_by_the_same_command(rules, tmp_path, server, monkeypatch):
    server.reply = lambda prompt: (503, {}, b"busy") if "not_too_long" in prompt else "yes"
    options = ("--judge", server.url, "--retries", "0")
    done = mine(tmp_path, *options)
    assert (done.returncode, done.stdout) == (1, "")
    message = "1 reply is missing (HTTP status 503: busy); the same command continues"
    assert done.stderr == f"simllm: error: {message}\n"
    assert not (tmp_path / "items.jsonl").exists()
    server.requests.clear()
    server.reply = lambda prompt: "yes"
    monkeypatch.setattr(mining, "_mine_repository", None)  # the repository is mined already
    assert mine(tmp_path, *options).returncode == 0
    assert len(server.requests) == 1
    assert len(read(tmp_path / "items.jsonl")) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["all", "items.jsonl", ANSWERS]


def test_an_answer_that_two_runs_lose_blocks_nothing(rules, tmp_path, server):
    server.reply = lambda prompt: (500, {}, b"bug") if "not_too_long" in prompt else "yes"
    options = ("--judge", server.url, "--retries", "0")
    assert mine(tmp_path, *options).returncode == 1
    done = mine(tmp_path, *options)
    assert done.returncode == 1
    assert verdicts(done) == {"yes": 1, "no": 0, "unclear": 0, "failed": 1}
    assert len(read(tmp_path / "items.jsonl")) == 1


def test_another_judge_is_asked_again(rules, tmp_path, server):
    server.reply = lambda prompt: (503, {}, b"") if "not_too_long" in prompt else "yes"
    assert mine(tmp_path, "--judge", server.url, "--retries", "0").returncode == 1
    server.requests.clear()
    server.reply = lambda prompt: "no"
    assert mine(tmp_path, "--judge", server.url, "--model", "other").returncode == 0
    assert len(server.requests) == 2
    assert (tmp_path / "items.jsonl").read_text() == ""
    assert len(read(tmp_path / ANSWERS)) == 3


def test_the_judge_shows_no_secret(rules, tmp_path, server):
    server.reply = lambda prompt: (401, {}, b"wrong key: sk-canary-123456")
    key = {"OPENAI_API_KEY": "sk-canary-123456"}
    done = mine(tmp_path, "--judge", server.url, env=key)
    assert done.returncode == 2
    assert "wrong key: [API key]" in done.stderr
    server.reply = lambda prompt: "yes, sk-canary-123456"
    assert mine(tmp_path, "--judge", server.url, env=key).returncode == 0
    done = mine(tmp_path, "--judge", "http://user:sk-canary-123456@host", "--overwrite", env=key)
    assert done.stderr.startswith("simllm: error: the address of the endpoint has a secret in it")
    assert not any(b"canary" in file.read_bytes() for file in tmp_path.iterdir() if file.is_file())


def test_counts_as_json(rules, tmp_path, server):
    git(tmp_path, "init", "--bare", tmp_path / "all" / "empty")
    server.reply = too_long
    done = mine(tmp_path, "--judge", server.url, "-q", "-f", "json")
    counts = json.loads(done.stdout)
    assert done.stderr == ""
    assert counts["repositories"] == 2
    assert counts["skipped"] == {"empty": f"{tmp_path / 'all' / 'empty'}: HEAD points to no commit"}
    assert counts["verdicts"] == {"yes": 1, "no": 0, "unclear": 0, "failed": 1}
    assert counts["splits"] == {"train": 0, "validation": 1, "test": 0}
    assert counts["remaining"]["no duplicates"] == 4
    assert len(counts["failures"]) == 1


def test_shallow_clones_are_mined_only_on_demand(rules, tmp_path):
    git(tmp_path, "clone", "--quiet", "--depth=3", f"file://{rules}", tmp_path / "all" / "cut")
    done = mine(tmp_path)
    assert done.returncode == 0
    assert f"warning: {tmp_path / 'all' / 'cut'}: a shallow clone, whose history is cut off" in done.stderr
    assert {item["repository"] for item in read(tmp_path / "items.jsonl")} == {"rules"}
    done = mine(tmp_path, "--allow-shallow", out="both.jsonl")
    assert (done.returncode, done.stderr.splitlines()[0]) == (0, "simllm: 2 repositories")
    done = run("mine", "satd", tmp_path / "all" / "cut", "-o", tmp_path / "none.jsonl")
    assert done.returncode == 2
    assert "a shallow clone" in done.stderr


def test_a_word_below_a_comment_of_somebody_else_is_no_debt(tmp_path):
    before = "def f():\n    # the result of the sum\n    # TODO\n    return 1\n"
    make_history(tmp_path / "all", {"a.py": before}, {"a.py": "def f():\n    return 2\n"})
    done = mine(tmp_path)
    assert "         1  comments that admit debt" in done.stderr
    assert "         0  have three words or more on that line" in done.stderr


def bomb(folder):
    """Make a small repository whose second commit has 12**8 files."""
    make_history(folder, {"a.py": "1"})
    tree = git(folder, "rev-parse", "HEAD^{tree}")
    for _ in range(8):
        rows = "".join(f"040000 tree {tree}\td{n}\0" for n in range(12))
        tree = git(folder, "mktree", "-z", input=rows.encode())
    commit = git(folder, "commit-tree", "-p", "HEAD", "-m", "bomb", tree)
    git(folder, "update-ref", "refs/heads/main", commit)
    return folder


def running_git(folder):
    """Return the processes of git that compare the commits of a repository."""
    mark = f"GIT_OBJECT_DIRECTORY={folder}/objects".encode()
    found = []
    for process_folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            command = (process_folder / "cmdline").read_bytes()
            if b"diff-tree" in command and mark in (process_folder / "environ").read_bytes():
                found.append(int(process_folder.name))
    return found


def test_a_repository_that_takes_too_long_is_left_out(rules, tmp_path):
    folder = bomb(tmp_path / "all" / "bomb")
    done = process("mine", "satd", tmp_path / "all", "-o", tmp_path / "items.jsonl", "--timeout", "2")
    assert done.returncode == 0
    assert f"warning: {folder}: takes more than 2 seconds; left out" in done.stderr
    assert "simllm: 2 repositories, 1 left out\n" in done.stderr
    assert len(read(tmp_path / "items.jsonl")) == 2
    assert not running_git(folder)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGKILL])
def test_git_ends_with_the_command(tmp_path, number):
    """Git is busy without output when the command is stopped; nothing stays behind."""
    folder = bomb(tmp_path / "all")
    (tmp_path / "tmp").mkdir()
    command = [
        sys.executable,
        "-m",
        "simllm",
        "mine",
        "satd",
        tmp_path / "all",
        "-o",
        tmp_path / "items.jsonl",
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path / "tmp")}
    running = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while not running_git(folder):
            assert time.monotonic() < deadline
            assert running.poll() is None
            time.sleep(0.01)
        running.send_signal(number)
        status = running.wait(30)
    finally:
        running.kill()
    ended = {signal.SIGINT: 130, signal.SIGKILL: -signal.SIGKILL}
    assert status == ended.get(number, 128 + number)
    while running_git(folder):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert not list((tmp_path / "tmp").iterdir())
    if number != signal.SIGKILL:  # then the lock is released, but its empty file stays
        assert not list(tmp_path.glob(".*.lock"))


def funnel(done):
    return json.loads(done.stdout)


JAVA = "class A {\n    int f() {\n%s        return %s;\n    }\n}\n"


def test_funnel_by_language_and_chosen_languages(tmp_path):
    before, after = repaid("f", "TODO: return two")
    debt = "        // FIXME: return the sum\n"
    make_history(
        tmp_path / "all" / "r",
        {"a.py": before, "A.java": JAVA % (debt, "1"), "B.java": JAVA % (debt, "2")},
        {"a.py": after, "A.java": JAVA % ("", "3"), "B.java": JAVA % ("", "2")},
    )
    found = funnel(mine(tmp_path, "-f", "json"))
    last, changes = "at most 1,024 tokens each", "the function's code changes"
    assert {name: (counts[last], counts[changes]) for name, counts in found["languages"].items()} == {
        "python": (1, 1), "java": (1, 1)
    }  # fmt: skip
    assert found["languages"]["java"]["the function lives on"] == 2
    assert found["remaining"][last] == 2
    found = funnel(mine(tmp_path, "-f", "json", "--language", "java,go", out="java.jsonl"))
    assert list(found["languages"]) == ["java"]
    assert [item["language"] for item in read(tmp_path / "java.jsonl")] == ["java"]
    done = mine(tmp_path, "--language", "java,cobol", out="none.jsonl")
    assert done.stderr.startswith("simllm: error: language 'cobol': expected one of cpp, go, ")


def test_other_words_admit_debt(tmp_path):
    before, after = repaid("f", "Workaround: return two")
    make_history(tmp_path / "all" / "r", {"a.py": before}, {"a.py": after})
    assert mine(tmp_path).returncode == 0
    assert read(tmp_path / "items.jsonl") == []
    assert mine(tmp_path, "--words", "todo, WORKAROUND", out="more.jsonl").returncode == 0
    assert [item["comment"] for item in read(tmp_path / "more.jsonl")] == ["# Workaround: return two"]
    done = mine(tmp_path, "--words", "todo,", out="wrong.jsonl")
    message = "--words '': expected words in ASCII without blanks, such as todo,fixme"
    assert (done.returncode, done.stderr) == (2, f"simllm: error: {message}\n")


def test_created_commit_is_the_one_that_wrote_the_words(tmp_path):
    """The file is renamed and indented after the debt, and a merge repays it."""
    day = 86_400
    code = "def f(x):\n{}    # TODO: return the sum of all\n    return 1\n" + "# padding of the file\n" * 9
    inner = code.replace("    # TODO", "        # TODO").replace("    return", "        return")
    inner = inner.replace("def f(x):\n", "def f(x):\n    if x:\n")
    stream = commit_stream({"a.py": code.format("").replace("    # TODO: return the sum of all\n", "")}, day)
    stream += commit_stream({"a.py": code.format("")}, 2 * day)
    stream += commit_stream({"a.py": None, "b.py": code.format("    x += 1\n")}, 3 * day)
    stream += commit_stream({"b.py": inner.format("    x += 1\n")}, 4 * day)
    stream += commit_stream(
        {
            "b.py": inner.format("    x += 1\n")
            .replace("        # TODO: return the sum of all\n", "")
            .replace("return 1", "return sum(x)")
        },
        5 * day + 6 * 3600,
    )
    folder = import_history(tmp_path / "all" / "r", stream)
    assert mine(tmp_path).returncode == 0
    [item] = read(tmp_path / "items.jsonl")
    commits = git(folder, "log", "--reverse", "--format=%H").split()
    assert (item["created_commit"], item["commit"], item["line"]) == (commits[1], commits[4], 4)
    dates = (item["created_date"], item["date"], item["lifespan_days"])
    assert dates == ("1970-01-03T00:00:00Z", "1970-01-06T06:00:00Z", 3.25)


def test_created_commit_is_unknown_where_a_shallow_history_ends(tmp_path):
    before, after = repaid("f", "TODO: return two")
    folder = make_history(tmp_path / "whole", {"b.py": ""}, {"a.py": before}, {"a.py": after})
    git(tmp_path, "clone", "--quiet", "--depth=2", f"file://{folder}", tmp_path / "all" / "shallow")
    assert mine(tmp_path, "--allow-shallow").returncode == 0
    [item] = read(tmp_path / "items.jsonl")
    assert (item["created_commit"], item["created_date"], item["lifespan_days"]) == (None, None, None)
    assert item["date"] == "1970-01-01T00:00:03Z"


def theirs_of(id_, comment, body):
    """Return an item of others without the name of its repository, commit and file."""
    source, reference = function("f", comment), function("f", body=body)
    return {"id": id_, "language": "python", "source": source, "reference": reference}


THEIRS = [
    {"id": 7, "language": "java", "comment": "TODO: check the range of a", "team": "x",
     "source": "public int f(int a) {\n    return a;\n}",
     "reference": "public int f(int a) {\n    return a < 0 ? 0 : a;\n}"},
    theirs_of(8, "TODO: return two", "return 2"),
    theirs_of(9, "TODO: two", "return 2"),
    theirs_of(10, "a nice function", "return 2"),
    theirs_of(11, "TODO: return two", "return   2"),
    {"language": "python", "source": function("f", "TODO: return two"), "reference": function("f")},
]  # fmt: skip


@pytest.fixture
def theirs(tmp_path):
    file = tmp_path / "theirs.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in THEIRS))
    return file


def test_items_of_others_are_checked_by_the_same_rules(theirs, tmp_path):
    done = run("mine", "satd", "--items", theirs, "-o", tmp_path / "kept.jsonl", "-f", "json")
    assert done.returncode == 0
    found = funnel(done)
    assert (found["items"], found["repositories"], found["splits"]) == (6, 0, {})
    assert list(found["remaining"].values()) == [5, 4, 4, 4, 3, 3, 3, 2, 2, 2]
    kept = read(tmp_path / "kept.jsonl")
    assert kept == [THEIRS[0], THEIRS[1] | {"comment": "# TODO: return two"}]
    assert done.stderr.startswith("simllm: 6 items\n         5  comments that admit debt are deleted\n")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"language": "java", "source": "a"}', 'line 1: expected a text under "reference"'),
        (
            '{"language": "cobol", "source": "a", "reference": "b"}',
            "line 1: language 'cobol': expected one of",
        ),
        ("", "empty; expected items"),
        ('{"id": 1, "language": "java", "source": "a", "reference": "b"}\n' * 2, "line 2: has the id 1 of "),
    ],
)
def test_wrong_items_of_others_give_one_line(tmp_path, line, message):
    (tmp_path / "theirs.jsonl").write_text(line)
    done = run("mine", "satd", "--items", tmp_path / "theirs.jsonl", "-o", tmp_path / "kept.jsonl")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert message in done.stderr
    assert not (tmp_path / "kept.jsonl").exists()


def test_items_and_repositories_do_not_go_together(theirs, rules, tmp_path):
    for arguments in ((tmp_path / "all", "--items", theirs), ()):
        done = run("mine", "satd", *arguments, "-o", tmp_path / "kept.jsonl")
        message = "expected folders of git repositories, or else --items FILE"
        assert done.stderr == f"simllm: error: {message}\n"


def test_a_judge_from_a_file_with_a_template_of_its_own_judges_items_of_others(theirs, tmp_path, server):
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "ask.j2").write_text("{{ item.team }}|{{ comment }}|{{ language }}")
    (tmp_path / "conf" / "judge.toml").write_text(
        f'base_url = "{server.url}"\nmodel = "m"\ntemperature = 0.5\ntemplate = "ask.j2"\n'
    )
    theirs.write_text("".join(json.dumps({"team": "y", **row}) + "\n" for row in THEIRS[:2]))
    server.reply = lambda prompt: "Answer: unclear" if prompt.startswith("x") else "So it is.\nAnswer: yes"
    options = ("--items", theirs, "-o", tmp_path / "kept.jsonl", "--judge", tmp_path / "conf" / "judge.toml")
    done = run("mine", "satd", *options)
    assert verdicts(done) == {"yes": 1, "no": 0, "unclear": 1, "failed": 0}
    assert [item["id"] for item in read(tmp_path / "kept.jsonl")] == [8]
    bodies = [body for _, _, body in server.requests]
    assert {(body["model"], body["temperature"]) for body in bodies} == {("m", 0.5)}
    prompts = {body["messages"][0]["content"] for body in bodies}
    assert prompts == {"x|TODO: check the range of a|java", "y|# TODO: return two|python"}


@pytest.mark.parametrize("name", ["satd-judge", "satd-judge-cot"])
def test_ready_questions_of_the_judge(rules, tmp_path, server, name):
    server.reply = lambda prompt: "1. It asks for two.\n2. One line.\n3. Yes.\n4. No doubt.\n\nAnswer: no"
    done = mine(tmp_path, "--judge", server.url, "--template", name)
    assert verdicts(done) == {"yes": 0, "no": 2, "unclear": 0, "failed": 0}
    [prompt, _] = [body["messages"][0]["content"] for _, _, body in server.requests]
    assert ("Think in four short steps" in prompt) == (name == "satd-judge-cot")
    assert '"unclear"' in prompt or "Answer: unclear" in prompt


def test_unknown_template_of_the_judge(rules, tmp_path, server):
    done = mine(tmp_path, "--judge", server.url, "--template", "satd-juge")
    assert done.returncode == 2
    assert "template 'satd-juge': expected a file, or one of satd-judge, satd-judge-cot, " in done.stderr
    (tmp_path / "a.j2").write_text("{{ komment }}")
    done = mine(tmp_path, "--judge", server.url, "--template", tmp_path / "a.j2")
    assert f"{tmp_path / 'a.j2'}: 'komment' is undefined; known: " in done.stderr
    assert not server.requests


def test_agreement_of_the_judge_with_people(tmp_path, server):
    """Five items: of three real ones, two are kept; of two others, one is unclear and one is kept."""
    rows = [theirs_of(n, f"TODO: return {n} now", f"return {n}") for n in range(100, 106)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    labels = {100: "yes", 101: True, 102: "Yes", 103: "no", 104: 0, 999: "no"}
    (tmp_path / "labels.jsonl").write_text(
        "".join(json.dumps({"id": id_, "label": label}) + "\n" for id_, label in labels.items())
    )
    answers = {"100": "yes", "101": "yes", "102": "no", "103": "hm", "104": "yes", "105": "no"}
    server.reply = lambda prompt: next(answer for n, answer in answers.items() if n in prompt)
    options = (
        "--items",
        tmp_path / "in.jsonl",
        "--judge",
        server.url,
        "--labelled",
        tmp_path / "labels.jsonl",
    )
    done = run("mine", "satd", *options, "-o", tmp_path / "kept.jsonl", "-f", "json")
    found = funnel(done)["agreement"]
    assert (found["labelled"], found["labels without a verdict"], found["unclear"]) == (5, 1, 1)
    values = [found[name] for name in ("precision", "recall", "f1", "accuracy")]
    assert values == pytest.approx([2 / 3, 2 / 3, 2 / 3, 3 / 5])
    # Chance: (3 · 3 + 2 · 2) / 25 = 13 / 25.
    assert found["kappa"] == pytest.approx((3 / 5 - 13 / 25) / (1 - 13 / 25))
    assert found["share of real changes without a judge"] == 3 / 5
    assert "simllm: agreement with 5 labels:\n" in done.stderr
    assert "     0.667  precision (0.21 to 0.94)\n" in done.stderr


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('{"id": 1, "label": "perhaps"}', 'line 1: expected yes or no under "label"'),
        ('{"id": 1, "label": "yes"}\n{"id": "1", "label": "no"}', "line 2: a second label of item 1"),
        ('{"label": "yes"}', 'line 1: expected the id of an item under "id"'),
        ("", "empty; expected labels"),
    ],
)
def test_wrong_labels_give_one_line_before_the_first_question(rules, tmp_path, server, lines, message):
    (tmp_path / "labels.jsonl").write_text(lines)
    done = mine(tmp_path, "--judge", server.url, "--labelled", tmp_path / "labels.jsonl")
    assert done.returncode == 2
    assert message in done.stderr
    assert not server.requests
