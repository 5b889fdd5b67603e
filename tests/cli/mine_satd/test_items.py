"""`simllm mine satd`: which items it finds, keeps and counts, and which input it refuses."""

import json
import re

import pytest

from tests.cli.mine_satd.repayments import (
    CHANGES,
    FIELDS,
    FUNNEL,
    THEIRS,
    function,
    funnel,
    mine,
    read,
    repaid,
)
from tests.command import process, run
from tests.histories import commit_stream, git, import_history, make_history

pytestmark = pytest.mark.slow  # many processes; the quick lane runs the documented pages


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
