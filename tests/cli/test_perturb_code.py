"""`simllm perturb code`: files, folders, JSON lines, and bad input."""

import json
import os
import socket
import subprocess
import sys

import pytest

from tests.command import run

JAVA = "class A {\n    int f(int a, int b) {\n        return a < b ? 1 : 2;\n    }\n}\n"
FUNCTION = "int f(int a, int b) {\n    return a < b ? 1 : 2;\n}"


@pytest.fixture
def items(tmp_path):
    file = tmp_path / "items.jsonl"
    rows = [
        {
            "id": "one",
            "language": "java",
            "source": FUNCTION,
            "reference": "compares",
            "nll": 0.5,
            "other": 1,
        },
        {"id": "bad", "language": "java", "source": "int f( {"},
        {"id": "same", "language": "java", "source": "int g() {\n    return 1;\n}"},
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def test_items_become_variants_with_what_was_done(items, tmp_path):
    done = run("perturb", "code", "--jsonl", items, "--rules", "swap-relation")
    assert done.returncode == 0, done.stderr
    one, bad, same = map(json.loads, done.stdout.splitlines())
    assert one == {
        "id": "one",
        "language": "java",
        "reference": "compares",
        "nll": 0.5,
        "status": "rewritten",
        "text": "int f(int a, int b) {\n    return b > a ? 1 : 2;\n}",
        "edits": [[33, 37, ""], [38, 38, " > a"]],
        "names": {},
        "counts": {"swap-relation": 1},
        "skipped": [],
        "line_map": [1, 2, 3],
        "proof": {"verdict": "parsed"},
    }
    assert bad["status"] == "unparsed"
    assert bad["reason"].startswith("line 1: syntax error")
    assert same["status"] == "unchanged"
    assert "3 variants: 1 rewritten, 1 unchanged, 1 unparsed" in done.stderr
    again = run("perturb", "code", "--jsonl", items, "--rules", "swap-relation", "-o", tmp_path / "v.jsonl")
    assert again.returncode == 0
    assert (tmp_path / "v.jsonl").read_text() == done.stdout
    refused = run("perturb", "code", "--jsonl", items, "-o", tmp_path / "v.jsonl")
    assert refused.returncode == 2
    assert "v.jsonl" in refused.stderr


def test_each_rule_gives_an_arm(items):
    done = run("perturb", "code", "--jsonl", items, "--each-rule", "-q")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    arms = [row.get("arm") for row in rows if row["id"] == "one"]
    assert arms[0] is None
    assert arms[1:4] == ["rename-function", "rename-parameter", "rename-variable"]
    assert len(arms) == 10
    (swapped,) = (row for row in rows if row["id"] == "one" and row.get("arm") == "swap-relation")
    assert "b > a" in swapped["text"]


def test_an_object_of_sources_is_read(tmp_path):
    file = tmp_path / "sources.json"
    file.write_text(json.dumps({"Lang-1": FUNCTION}, indent=1))
    done = run("perturb", "code", "--jsonl", file, "--language", "java", "--names", "plain", "-q")
    row = json.loads(done.stdout)
    assert (row["id"], row["names"]) == ("Lang-1", {"f": "f0", "a": "p0", "b": "p1"})


def test_one_variant_is_counted_in_the_singular(tmp_path):
    (tmp_path / "A.java").write_text(JAVA)
    done = run("perturb", "code", tmp_path / "A.java", "--rules", "swap-relation", "-o", tmp_path / "out")
    assert "simllm: 1 variant: 1 rewritten" in done.stderr


def test_a_folder_keeps_its_other_files(tmp_path):
    source = tmp_path / "src"
    (source / "deep").mkdir(parents=True)
    (source / "deep" / "A.java").write_bytes(JAVA.replace("\n", "\r\n").encode())
    (source / "README.md").write_text("as it is")
    (source / "deep" / "A.java").chmod(0o755)
    (source / "README.md").chmod(0o640)
    (source / ".git").mkdir()
    (source / ".git" / "config").write_text("hidden")
    (source / ".simllm").write_text("the marker of another folder")
    (source / ".editorconfig").write_text("root = true")
    (source / ".tools").mkdir()
    (source / ".tools" / "T.java").write_text(JAVA)
    (source / "empty").mkdir()
    done = run("perturb", "code", source, "--rules", "swap-relation", "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    found = {str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*")}
    copied = {"deep", "README.md", ".editorconfig", ".tools", ".tools/T.java"}
    assert found == {*copied, "deep/A.java", "variants.jsonl", ".simllm"}
    assert "variants of code" in (tmp_path / "out" / ".simllm").read_text()
    assert (tmp_path / "out" / ".tools" / "T.java").read_text() == JAVA
    expected = JAVA.replace("a < b", "b > a").replace("\n", "\r\n").encode()
    assert (tmp_path / "out" / "deep" / "A.java").read_bytes() == expected
    modes = [(tmp_path / "out" / name).stat().st_mode & 0o777 for name in ("deep/A.java", "README.md")]
    assert modes == [0o755, 0o640]
    assert json.loads((tmp_path / "out" / "variants.jsonl").read_text())["id"] == "deep/A.java"
    (tmp_path / "out" / "mine.txt").write_text("a user's file")
    again = run("perturb", "code", source, "--rules", "swap-equals", "-o", tmp_path / "out", "-q")
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "out" / "mine.txt").read_text() == "a user's file"
    assert (tmp_path / "out" / "deep" / "A.java").read_bytes() == JAVA.replace("\n", "\r\n").encode()


def test_modules_of_one_function_keep_their_interface(tmp_path):
    (tmp_path / "src").mkdir()
    lib = "def get_total(prices, by=2):\n    all = 0\n    all += sum(prices)\n    return all * by\n"
    main = "from lib import get_total\nprint(get_total(prices=[3], by=4))\n"
    (tmp_path / "src" / "lib.py").write_text(lib)
    (tmp_path / "src" / "main.py").write_text(main)
    words = ["--names", "plain", "--prove", f"{sys.executable} {{dir}}/main.py", "-o", tmp_path / "out"]
    done = run("perturb", "code", tmp_path / "src", *words)
    assert (done.returncode, "tests passed" in done.stderr) == (0, True), done.stderr
    expected = lib.replace("all", "v0")
    assert (tmp_path / "out" / "lib.py").read_text() == expected
    assert (tmp_path / "out" / "main.py").read_text() == main
    one = run("perturb", "code", tmp_path / "src" / "lib.py", "--names", "plain", "-o", tmp_path / "one")
    assert (one.returncode, (tmp_path / "one" / "lib.py").read_text()) == (0, expected)


def test_links_between_copied_files_are_recreated(tmp_path):
    source, out = tmp_path / "src", tmp_path / "out"
    (source / "deep").mkdir(parents=True)
    (source / "deep" / "A.java").write_text(JAVA)
    (source / ".git").mkdir()
    (source / ".git" / "config").write_text("hidden")
    (tmp_path / "secret.txt").write_text("outside")
    kept = {"B.java": "deep/A.java", "deep/up": "../B.java"}
    lost = {
        "out": "../secret.txt",
        "back": "../src/deep/A.java",
        "absolute": source / "deep" / "A.java",
        "nowhere": "nothing",
        "loop": "loop",
        "git": ".git/config",
        "after": "nowhere",
    }
    for name, target in (kept | lost).items():
        (source / name).symlink_to(target)
    for _ in range(2):  # the second run replaces the folder with its links
        done = run("perturb", "code", source, "--rules", "swap-relation", "-o", out)
        assert done.returncode == 0, done.stderr
        found = {str(p.relative_to(out)): str(p.readlink()) for p in out.rglob("*") if p.is_symlink()}
        assert found == kept
        assert (out / "deep" / "up").read_text() == JAVA.replace("a < b", "b > a")
    assert (source / "deep" / "A.java").read_text() == JAVA
    assert (tmp_path / "secret.txt").read_text() == "outside"


def test_links_to_folders_are_recreated(tmp_path):
    source, out = tmp_path / "src", tmp_path / "out"
    (source / "deep").mkdir(parents=True)
    (source / "deep" / "A.java").write_text(JAVA)
    (source / "lib").symlink_to("deep")
    (source / "through").symlink_to("lib/A.java")
    (source / "outside").symlink_to(tmp_path)
    for _ in range(2):
        done = run("perturb", "code", source, "--rules", "swap-relation", "-o", out)
        assert done.returncode == 0, done.stderr
        assert {p.name: str(p.readlink()) for p in out.rglob("*") if p.is_symlink()} == {
            "lib": "deep",
            "through": "lib/A.java",
        }
        assert [row["id"] for row in map(json.loads, (out / "variants.jsonl").open())] == ["deep/A.java"]


def test_unparsed_files_of_a_folder_are_copied_with_a_warning(tmp_path):
    source, out = tmp_path / "src", tmp_path / "out"
    source.mkdir()
    (source / "A.java").write_text(JAVA)
    broken = {
        "Class.java": (b"class {\n", "1: syntax error"),
        "Method.java": (FUNCTION.encode(), "1: syntax error; expected a whole Java file"),
        "ascii.py": (b"# -*- coding: latin-1 -*-\n", "1: the encoding is iso-8859-1, expected UTF-8"),
        "latin.py": (b'# -*- coding: latin-1 -*-\nx = "\xe9"\n', "2: the code is not valid UTF-8"),
        "null.py": (b"x = 1\n\0\n", "null byte"),
        "two.py": (b'\nprint "py2"\n', "2: Missing parentheses"),
        "zero.py": (b"x = = 0\n", "1: invalid syntax"),
    }
    for name, (content, _) in broken.items():
        (source / name).write_bytes(content)
    done = run("perturb", "code", source, "-o", out, "--rules", "swap-relation")
    assert done.returncode == 0, done.stderr
    assert "8 variants: 1 rewritten, 0 unchanged, 7 unparsed" in done.stderr
    warnings = [line for line in done.stderr.splitlines() if "warning" in line]
    for (name, (_, reason)), line in zip(list(broken.items())[:5], warnings[:5], strict=True):
        assert line.startswith(f"simllm: warning: {source / name}:"), line
        assert reason in line
    assert warnings[5:] == ["simllm: warning: 2 more unparsed files are copied unchanged; see variants.jsonl"]
    rows = {row["id"]: row for row in map(json.loads, (out / "variants.jsonl").open())}
    for name, (content, reason) in broken.items():
        assert (out / name).read_bytes() == content
        assert rows[name]["status"] == "unparsed"
        assert reason in f" {rows[name]['reason'].removeprefix('line ')}"
    assert rows["A.java"]["status"] == "rewritten"


def test_a_folder_in_which_nothing_can_be_parsed_is_an_error(tmp_path):
    (tmp_path / "a.py").write_text('print "py2"\n')
    (tmp_path / "b.py").write_text("x = = 0\n")
    one = run("perturb", "code", tmp_path / "a.py", "-o", tmp_path / "out")
    assert (one.returncode, one.stderr.count("\n")) == (2, 1)
    assert f"error: {tmp_path / 'a.py'}:1: Missing parentheses" in one.stderr
    both = run("perturb", "code", tmp_path / "a.py", tmp_path / "b.py", "-o", tmp_path / "out")
    assert (both.returncode, both.stderr.count("\n")) == (2, 1)
    assert f"error: {tmp_path / 'a.py'}:1: Missing parentheses" in both.stderr
    assert both.stderr.endswith("; no other file can be parsed\n")
    assert not (tmp_path / "out").exists()


def test_a_syntax_error_in_the_only_file_of_a_folder_writes_nothing(tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "A.java").write_text("class A {\n    int x\n}\n")
    done = run("perturb", "code", tmp_path / "src", "-o", tmp_path / "out")
    assert done.returncode == 2
    assert f"{tmp_path / 'src' / 'A.java'}:2: syntax error" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "expected files or folders, or --jsonl FILE"),
        (["nowhere", "-o", "out"], "nowhere: no such file or folder"),
        (["--jsonl", "nowhere.jsonl"], "nowhere.jsonl"),
        (["--jsonl", "{items}", "--rules", "for-to-wile"], "unknown rule 'for-to-wile'"),
        (["--jsonl", "{items}", "--rules", ""], "expected the name of at least one rule; known: rename-fun"),
        (["--jsonl", "{items}", "--language", "cobol"], "--language: invalid choice: 'cobol'"),
        (["--jsonl", "{items}", "--share", "2"], "share must lie between 0 and 1"),
        (["--jsonl", "{items}", "--names", "nothing.tsv"], "nothing.tsv"),
        (["--jsonl", "{items}", "--model", "m"], "--model goes with --names nearest"),
        (["{items}", "-o", "out"], "no file ending in .java or .py"),
        (["{items}"], "expected -o FOLDER"),
        (["{items}", "--each-rule", "-o", "out"], "--each-rule and --language go with --jsonl"),
    ],
)
def test_bad_input_gives_one_line(items, tmp_path, words, message):
    done = run("perturb", "code", *(word.format(items=items) for word in words), cwd=tmp_path)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert message in line


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"language": "java", "source": "x"}, 'expected a text under "id"'),
        ({"id": "a", "source": "x"}, 'expected a text under "language"'),
        ({"id": "a", "language": "java"}, 'expected a text under "source"'),
        ({"id": "a", "language": "go", "source": "x"}, "expected the language java or python, not 'go'"),
        ({"id": "one", "language": "java", "source": FUNCTION}, "the id 'one' stands twice"),
    ],
)
def test_bad_items_give_file_and_line(items, row, message):
    items.write_text(items.read_text() + json.dumps(row) + "\n")
    done = run("perturb", "code", "--jsonl", items, "-q")
    assert done.returncode == 2
    assert f"{items}, line 4" in done.stderr
    assert message in done.stderr


def test_a_command_proves_a_folder(tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "A.java").write_text(JAVA)
    words = [
        "perturb",
        "code",
        tmp_path / "src",
        "--rules",
        "swap-relation",
        "-o",
        tmp_path / "out",
        "--prove",
    ]
    done = run(*words, "grep -q class {dir}/A.java")
    assert (done.returncode, "tests passed" in done.stderr) == (0, True), done.stderr
    done = run(*words, "grep -q 'a < b' {dir}/A.java")
    assert done.returncode == 2
    assert "refuted, nothing is written: the command fails on the variants" in done.stderr
    assert "b > a" in (tmp_path / "out" / "A.java").read_text()  # the variant of the first run
    done = run(*words, "false {dir}")
    assert "the command fails on the original code" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--jsonl", "{items}", "--prove", "make {dir}"], "--prove inputs goes with --jsonl"),
        (["{items}", "-o", "out", "--prove", "make {dir}"], "--prove COMMAND needs a single folder"),
        (["--jsonl", "{items}", "--unsafe"], "--unsafe goes with --prove inputs"),
        ([".", "-o", "out", "--prove", "make {dir}", "--unsafe"], "--unsafe goes with --prove inputs"),
        (["--jsonl", "{items}", "--parallel", "0"], "--parallel 0: expected 1 or more"),
    ],
)
def test_options_of_proofs_that_do_not_fit_are_refused(items, tmp_path, words, message):
    done = run("perturb", "code", *(word.format(items=items, dir="{dir}") for word in words), cwd=tmp_path)
    assert (done.returncode, message in done.stderr) == (2, True), done.stderr


def test_copies_carry_no_special_permissions(tmp_path):
    source, out = tmp_path / "src", tmp_path / "out"
    (source / "deep").mkdir(parents=True)
    modes = {"deep/A.java": 0o4755, "tool": 0o6711, "data": 0o1640, "deep": 0o2750, "": 0o1700}
    (source / "deep" / "A.java").write_text(JAVA)
    (source / "tool").write_text("x")
    (source / "data").write_text("x")
    for name, mode in modes.items():
        (source / name).chmod(mode)
    done = run("perturb", "code", source, "-o", out, "-q")
    assert done.returncode == 0, done.stderr
    assert {name: (out / name).stat().st_mode & 0o7777 for name in modes} == {
        name: mode & 0o777 for name, mode in modes.items()
    }
    assert {(out / name).stat().st_uid for name in modes} == {os.geteuid()}


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_copies_belong_to_the_user_and_have_no_attributes(tmp_path):
    source, out = tmp_path / "src", tmp_path / "out"
    source.mkdir()
    (source / "A.java").write_text(JAVA)
    (source / "tool").write_text("x")
    for name in ("A.java", "tool"):
        os.setxattr(source / name, "user.note", b"x")
        os.chown(source / name, 12345, 12346)
        (source / name).chmod(0o6755)
    done = run("perturb", "code", source, "-o", out, "-q")
    assert done.returncode == 0, done.stderr
    for name in ("A.java", "tool"):
        status = (out / name).stat()
        assert (status.st_uid, status.st_gid, status.st_mode & 0o7777) == (0, os.getegid(), 0o755)
        assert os.listxattr(out / name) == []


def test_special_files_are_left_out_and_hard_links_and_holes_become_files(tmp_path):
    source, out = tmp_path / "src", tmp_path / "out"
    source.mkdir()
    (source / "A.java").write_text(JAVA)
    os.mkfifo(source / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(source / "socket"))
    (source / "one").write_text("linked")
    os.link(source / "one", source / "two")
    with (source / "sparse").open("wb") as file:
        file.seek(2**25)
        file.write(b"end")
        file.truncate(2**26)
    done = run("perturb", "code", source, "-o", out, "-q")
    assert done.returncode == 0, done.stderr
    assert {path.name for path in out.iterdir()} == {
        "A.java",
        "one",
        "two",
        "sparse",
        "variants.jsonl",
        ".simllm",
    }
    assert [(out / name).stat().st_nlink for name in ("one", "two")] == [1, 1]
    assert (out / "sparse").read_bytes() == (source / "sparse").read_bytes()
    if (source / "sparse").stat().st_blocks * 512 < 2**20:  # the file system knows holes
        assert (out / "sparse").stat().st_blocks * 512 < 2**20
    done = run("perturb", "code", source / "pipe", "-o", tmp_path / "other")
    assert (done.returncode, "not a pipe, socket or device" in done.stderr) == (2, True)


def test_a_source_file_that_is_too_large_is_copied(tmp_path):
    source, out = tmp_path / "src", tmp_path / "out"
    source.mkdir()
    (source / "A.java").write_text(JAVA)
    with (source / "large.py").open("wb") as file:
        file.truncate(2**24 + 1)
    done = run("perturb", "code", source, "-o", out)
    assert done.returncode == 0, done.stderr
    assert "large.py:1: the file is larger than 16 MiB; copied unchanged" in done.stderr
    assert (out / "large.py").stat().st_size == 2**24 + 1


def test_names_of_files_cannot_steer_the_terminal(tmp_path):
    source = tmp_path / "src\x1b]0;title\x07"
    source.mkdir()
    (source / "a\u202eb\x1b[31m.py").write_text("x = (\n")
    (source / "A.java").write_text(JAVA)
    done = run("perturb", "code", source, "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "src\\x1b]0;title\\x07/a\\u202eb\\x1b[31m.py:1: " in done.stderr
    (source / "A.java").unlink()
    failed = run("perturb", "code", source, "-o", tmp_path / "other")
    assert failed.returncode == 2
    assert all(line.isprintable() for line in (done.stderr + failed.stderr).splitlines())


def test_syntax_errors_name_the_version_of_python(tmp_path):
    (tmp_path / "a.py").write_text("def f(x):\n    return (x\n")
    done = run("perturb", "code", tmp_path / "a.py", "-o", tmp_path / "out")
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert (done.returncode, f"(read by Python {version})" in done.stderr) == (2, True)


@pytest.mark.slow
def test_two_processes_do_not_write_the_same_file(items, tmp_path):
    out = tmp_path / "v.jsonl"
    os.mkfifo(tmp_path / "slow.jsonl")
    words = [sys.executable, "-m", "simllm", "perturb", "code", "-o", str(out), "--jsonl"]
    first = subprocess.Popen([*words, str(tmp_path / "slow.jsonl")], stderr=subprocess.DEVNULL)
    try:
        with (tmp_path / "slow.jsonl").open("wb") as pipe:  # waits until the first process reads
            second = subprocess.run([*words, str(items)], capture_output=True, text=True)
            assert second.returncode == 2
            assert second.stderr == f"simllm: error: {out}: another process is writing there\n"
            pipe.write(items.read_bytes())
        assert first.wait(60) == 0
    finally:
        first.kill()
    assert len(out.read_text().splitlines()) == 3
    third = subprocess.run([*words, str(items)], capture_output=True, text=True)
    assert (third.returncode, "exists already" in third.stderr) == (2, True)


def test_names_that_are_not_used_and_code_that_stays_are_told(items, tmp_path):
    (tmp_path / "names.tsv").write_text("a\tleft\nb\treturn1\nother\tthing\ncommon\tcompares\n")
    words = (
        "perturb",
        "code",
        "--jsonl",
        items,
        "--rules",
        "rename-parameter",
        "--names",
        tmp_path / "names.tsv",
    )
    done = run(*words)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[0])["names"] == {"a": "left", "b": "return1"}
    assert "2 of 4 old names are renamed nowhere (other, common)" in done.stderr
    (tmp_path / "names.tsv").write_text("a\tif\n")
    done = run(*words)
    assert (done.returncode, done.stderr) == (
        2, f"simllm: error: {tmp_path / 'names.tsv'}:1: if cannot be a new name for a\n"
    )  # fmt: skip
    done = run("perturb", "code", "--jsonl", items, "--rules", "dead-code")
    assert "rewritten" in done.stderr
    done = run("perturb", "code", "--jsonl", items, "--rules", "for-to-while")
    assert "warning: no code differs from its original: 0 of 3 rewritten" in done.stderr


def test_an_item_has_names_of_its_own(tmp_path):
    row = {"id": "a", "language": "java", "source": FUNCTION, "names": {"a": "left", "b": "f"}}
    (tmp_path / "items.jsonl").write_text(json.dumps(row) + "\n")
    done = run("perturb", "code", "--jsonl", tmp_path / "items.jsonl", "--names", "plain", "-q")
    found = json.loads(done.stdout)
    assert found["names"] == {"f": "f0", "a": "left"}
    assert "there is no new name for b: 'f' is taken: the word occurs in the code" in {
        place["reason"] for place in found["skipped"]
    }
    (tmp_path / "items.jsonl").write_text(json.dumps(row | {"names": ["a"]}) + "\n")
    done = run("perturb", "code", "--jsonl", tmp_path / "items.jsonl")
    assert (done.returncode, "line 1: expected an object of new names" in done.stderr) == (2, True)
