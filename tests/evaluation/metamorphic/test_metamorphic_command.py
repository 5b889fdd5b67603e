"""`simllm evaluate metamorphic`: runs of the tested tool, checks of its answers, resuming, and bad input."""

import json
import signal
import subprocess
import sys
import time

import pytest

from tests.browser import check_page, needs_browser
from tests.command import run

SOURCE = "int f{n}(int a) {{\n    for (int i = 0; i < a; i++) {{ a--; }}\n    return a;\n}}\n"
TOOL = """import os, sys
code = sys.stdin.read()
with open(os.environ["ASKED"], "a") as file:
    file.write("x\\n")
if "crash" in code:
    sys.exit(3)
print("for" in code, os.environ["SIMLLM_LANGUAGE"], os.environ["SIMLLM_DRAW"])
"""


@pytest.fixture
def study(tmp_path, monkeypatch):
    """Return the options of a study of five items. Three have a loop, one has none, one crashes the tool."""
    sources = [SOURCE.format(n=n) for n in range(3)]
    sources += ["int g(int a) {\n    return a;\n}\n", "int crash(int a) {\n    return a;\n}\n"]
    rows = [
        {
            "id": f"item{i}",
            "language": "java",
            "source": source,
            "label": "True java 0",
            "nll": i,
        }
        for i, source in enumerate(sources)
    ]
    (tmp_path / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = run(
        *("perturb", "code", "--jsonl", tmp_path / "items.jsonl", "--rules", "for-to-while,swap-relation"),
        *("-o", tmp_path / "variants.jsonl", "--each-rule"),
    )
    assert done.returncode == 0, done.stderr
    (tmp_path / "tool.py").write_text(TOOL)
    monkeypatch.setenv("ASKED", str(tmp_path / "asked"))
    options = ["--items", tmp_path / "items.jsonl", "--variants", tmp_path / "variants.jsonl"]
    return [*options, "--command", f"{sys.executable} {tmp_path / 'tool.py'}", "--out", tmp_path / "out"]


def results(tmp_path):
    return json.loads((tmp_path / "out" / "metamorphic.json").read_text())["tools"][""]


def test_a_command_is_asked_and_judged_by_labels(study, tmp_path):
    done = run("evaluate", "metamorphic", *study, "--parallel", "2")
    assert done.returncode == 0, done.stderr
    found = results(tmp_path)
    assert found["mean"]["items"] == 4
    assert [one["original"] for one in found["outcomes"]] == [[1, 1]] * 3 + [[0, 1]]
    assert [one["transformed"] for one in found["outcomes"]] == [[0, 1]] * 4
    assert found["crashes"] == {"original": 1, "transformed": 1}
    assert found["mcnemar"]["lost"] == 3
    assert found["arms"]["for-to-while"]["difference"] == -1.0
    assert found["arms"]["swap-relation"]["difference"] == 0.0
    assert found["unchanged"]["items"] == 1
    asked = (tmp_path / "asked").read_text().count("x")
    page = (tmp_path / "out" / "report.html").read_text()
    again = run("evaluate", "metamorphic", *study, "--parallel", "2")
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "asked").read_text().count("x") == asked
    assert (tmp_path / "out" / "report.html").read_text() == page


def test_an_unchanged_variant_gets_answers_of_its_own(study, tmp_path):
    (tmp_path / "tool.py").write_text("import os\nprint('True java', os.environ['SIMLLM_DRAW'])\n")
    done = run("evaluate", "metamorphic", *study)
    assert done.returncode == 0, done.stderr
    found = results(tmp_path)["unchanged"]
    assert (found["items"], found["original"], found["transformed"]) == (2, 1.0, 0.0)


def test_an_item_whose_variant_is_refuted_still_counts_for_its_single_rules(study, tmp_path):
    rows = [json.loads(line) for line in (tmp_path / "variants.jsonl").read_text().splitlines()]
    (row,) = (row for row in rows if row["id"] == "item0" and not row.get("arm"))
    row["status"] = "refuted"
    (tmp_path / "variants.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = run("evaluate", "metamorphic", *study)
    assert done.returncode == 0, done.stderr
    found = results(tmp_path)
    assert [one["id"] for one in found["outcomes"]] == ["item1", "item2", "item3"]
    assert found["arms"]["for-to-while"]["items"] == 3


def test_a_judge_command_reads_restored_answers(study, tmp_path):
    done = run(
        *("perturb", "code", "--jsonl", tmp_path / "items.jsonl", "--rules", "rename-parameter"),
        *("--names", "plain", "-o", tmp_path / "variants.jsonl", "--overwrite"),
    )
    assert done.returncode == 0, done.stderr
    (tmp_path / "tool.py").write_text("import sys\nprint(sys.stdin.read())\n")
    judge = f"""{sys.executable} -c "import sys; sys.exit('int a' not in sys.stdin.read())" """
    for more, share in ([], 0.0), (["--restore"], 1.0):
        done = run("evaluate", "metamorphic", *study, "--judge", judge, *more)
        assert done.returncode == 0, done.stderr
        assert results(tmp_path)["mean"]["original"] == 1.0
        assert results(tmp_path)["mean"]["transformed"] == share


def test_a_metric_judges_and_compares_the_answers(tmp_path):
    rows = []
    for number in range(2):
        rows.append({"id": "a", "side": "original", "draw": number, "output": "adds two numbers"})
        rows.append({"id": "a", "side": "transformed", "draw": number, "output": "prints a list"})
    (tmp_path / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    item = {"id": "a", "language": "java", "source": "int f() {\n}", "reference": "adds two numbers"}
    (tmp_path / "items.jsonl").write_text(json.dumps(item) + "\n")
    done = run(
        *("evaluate", "metamorphic", "--recorded", tmp_path / "results.jsonl", "--out", tmp_path / "out"),
        *("--items", tmp_path / "items.jsonl", "--metric", "jaccard", "--threshold", "0.9"),
    )
    assert done.returncode == 0, done.stderr
    found = results(tmp_path)
    assert (found["mean"]["original"], found["mean"]["transformed"]) == (1.0, 0.0)
    assert (found["agreement"]["within"], found["agreement"]["across"]) == (1.0, 0.0)


def test_several_tools_are_corrected_together(tmp_path):
    rows = [
        {"id": f"{i}", "model": model, "original": [9, 10], "transformed": [low, 10]}
        for i in range(8)
        for model, low in (("gpt", 5), ("llama", 9))
    ]
    (tmp_path / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = run("evaluate", "metamorphic", "--recorded", tmp_path / "results.jsonl", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    tools = json.loads((tmp_path / "out" / "metamorphic.json").read_text())["tools"]
    assert tools["gpt"]["holm_p"] == pytest.approx(2 * tools["gpt"]["mean"]["p"])
    page = (tmp_path / "out" / "report.html").read_text()
    assert "gpt succeeds in .900 of the draws on originals and in .500 on variants (8 items)" in page
    assert "The data do not show that this is more than chance" in page


def test_a_single_item_has_no_interval(tmp_path):
    (tmp_path / "results.jsonl").write_text(json.dumps(ROW) + "\n")
    done = run("evaluate", "metamorphic", "--recorded", tmp_path / "results.jsonl", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    header, row = (line.split("\t") for line in done.stdout.splitlines())
    assert [row[header.index(name)] for name in ("items", "low", "high")] == ["1", "n/a", "n/a"]


def test_limits_apply_to_the_judge_of_recorded_answers(tmp_path):
    rows = [{"id": "a", "side": side, "output": "x"} for side in ("original", "transformed")]
    (tmp_path / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ("--recorded", tmp_path / "results.jsonl", "--out", tmp_path / "out", "--judge", "sleep 60")
    done = run("evaluate", "metamorphic", *words, "--timeout", "0.1", "--parallel", "2")
    assert done.returncode == 0, done.stderr
    assert results(tmp_path)["mean"]["original"] == 0


def test_results_inside_the_folder_of_the_report_are_refused(tmp_path):
    (tmp_path / "results.jsonl").write_text(json.dumps(ROW) + "\n")
    words = ("evaluate", "metamorphic", "--out", tmp_path / "out", "--recorded")
    assert run(*words, tmp_path / "results.jsonl").returncode == 0
    inner = tmp_path / "out" / "metamorphic.json"
    before = inner.read_bytes()
    done = run(*words, inner)
    assert (done.returncode, "name another folder" in done.stderr) == (2, True)
    assert inner.read_bytes() == before


@pytest.mark.slow
@needs_browser
def test_the_page_shows_hostile_answers_as_text(study, tmp_path):
    (tmp_path / "tool.py").write_text("import sys\nsys.stdin.read()\nprint('True java 0')\n")
    items = (tmp_path / "items.jsonl").read_text().replace("int g(", "int g(/*<script>alert(1)</script>*/")
    (tmp_path / "items.jsonl").write_text(items)
    done = run("evaluate", "metamorphic", *study)
    assert done.returncode == 0, done.stderr
    assert "<script>alert" not in (tmp_path / "out" / "report.html").read_text()
    check_page(tmp_path / "out" / "report.html", tmp_path, 1500)


ROW = {"id": "a", "original": [1, 2], "transformed": [0, 2]}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "no results in it"),
        ([{"id": "a"}], "line 1: expected id, side, draw and success, or id, original, transformed"),
        ([ROW | {"original": [3, 2]}], "line 1: expected [successes, draws] under original"),
        ([ROW | {"original": [-1, 2]}], "line 1: expected [successes, draws] under original"),
        ([ROW | {"original": [0, 0]}], "line 1: expected [successes, draws] under original"),
        ([ROW, ROW], "line 2: repeats"),
        ([ROW | {"nll": "x"}], "line 1: expected a number under nll"),
        ([ROW | {"modell": "x"}], "line 1: unknown field modell; did you mean model?"),
        ([{"id": "a", "side": "left", "success": True}], "line 1: expected the side original or transformed"),
        ([{"id": "a", "side": "original"}], "line 1: expected success, output or crashed"),
        ([{"id": "a", "side": "original", "success": 2}], "line 1: expected true or false under success"),
        (
            [{"id": "a", "side": "original", "success": True}],
            "line 1: the item a has no draw of the side",
        ),
        ([{"id": "a", "side": "original", "output": "x"}], "line 1: an output without success needs a label"),
        ([{"id": 7, "original": [1, 2], "transformed": [0, 2]}], 'expected a text under "id"'),
    ],
)
def test_bad_results_give_file_and_line(tmp_path, rows, message):
    file = tmp_path / "results.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = run("evaluate", "metamorphic", "--recorded", file, "--out", tmp_path / "out")
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert message in line
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "expected --recorded FILE, or --items, --variants and --command"),
        (["--command", "x"], "--command needs --items and --variants"),
        (["--recorded", "r", "--variants", "v"], "--variants needs --items"),
        (["--recorded", "r", "--threshold", "1"], "--threshold needs --metric"),
        (["--recorded", "r", "--judge", "x", "--metric", "bleu", "--threshold", "1"], "name one"),
        (["--command", "x", "--items", "i", "--variants", "v", "--draws", "0"], "expected --draws and"),
        (["--recorded", "r", "--judge", "x", "--parallel", "0"], "expected --draws and --parallel from 1"),
        (["--recorded", "r", "--model", "m"], "--model goes with --metric simllm or simllm-same"),
        (["--recorded", "r", "--draws", "1"], "--draws goes with --command"),
        (["--recorded", "r", "--judge", "x", "--draws", "4"], "--draws goes with --command"),
        (["--recorded", "r", "--parallel", "1"], "--parallel goes with --command or --judge"),
        (["--recorded", "r", "--timeout", "3"], "--timeout goes with --command or --judge"),
        (["--recorded", "r"], "r: "),
        (
            ["--command", "a 'b", "--items", "i", "--variants", "v"],
            '--command: "a \'b": No closing quotation',
        ),
        (["--command", "  ", "--items", "i", "--variants", "v"], "--command: '  ': expected a command"),
        (["--recorded", "r", "--judge", "x 'y"], '--judge: "x \'y": No closing quotation'),
    ],
)
def test_bad_options_give_one_line(tmp_path, words, message):
    done = run("evaluate", "metamorphic", *words, "--out", tmp_path / "out", cwd=tmp_path)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert message in line


def test_unknown_items_and_commands_that_do_not_exist_are_named(study, tmp_path):
    with (tmp_path / "variants.jsonl").open("a") as file:
        file.write('{"id": "other", "text": "x"}\n')
    done = run("evaluate", "metamorphic", *study)
    assert (done.returncode, "unknown item other" in done.stderr) == (2, True)
    lines = (tmp_path / "variants.jsonl").read_text().splitlines()[:-1]
    (tmp_path / "variants.jsonl").write_text("\n".join(lines) + "\n")
    done = run("evaluate", "metamorphic", *study[:4], "--command", "./nowhere", "--out", tmp_path / "out")
    assert (done.returncode, "./nowhere: cannot be started" in done.stderr) == (2, True)


def test_items_that_cannot_be_judged_are_named_before_anything_is_asked(study, tmp_path):
    done = run("evaluate", "metamorphic", *study, "--metric", "rouge-l", "--threshold", ".5")
    assert done.returncode == 2
    assert done.stderr == f"simllm: error: {study[1]}: the item item0 has no reference\n"
    assert not (tmp_path / "asked").exists()
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_killed_study_asks_for_nothing_on_record(study, tmp_path):
    tool = (tmp_path / "tool.py").read_text()
    (tmp_path / "tool.py").write_text("import time\ntime.sleep(0.1)\n" + tool)
    words = [*map(str, study), "--draws", "3", "--parallel", "2"]
    command = [sys.executable, "-m", "simllm", "evaluate", "metamorphic", *words]
    for moment in range(3):
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        answers = tmp_path / "out" / "answers.jsonl"
        while time.monotonic() < deadline:
            if answers.exists() and answers.read_bytes().count(b"\n") > 6 * (moment + 1):
                break
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
    time.sleep(1)  # the command of the killed study comes to its end
    recorded = answers.read_bytes().count(b"\n")
    asked = (tmp_path / "asked").read_text().count("x")
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    total = answers.read_bytes().count(b"\n")
    assert (tmp_path / "asked").read_text().count("x") - asked == total - recorded
    whole = (tmp_path / "out" / "metamorphic.json").read_text()
    other = [word if word != str(tmp_path / "out") else str(tmp_path / "other") for word in command]
    assert subprocess.run(other, capture_output=True).returncode == 0
    found = json.loads((tmp_path / "other" / "metamorphic.json").read_text())
    assert found["tools"] == json.loads(whole)["tools"]


def test_a_tool_that_always_crashes_is_told(tmp_path):
    items = tmp_path / "items.jsonl"
    items.write_text(
        '{"id": "a", "language": "python", "source": "def f(n):\\n    return n\\n", "label": "x"}\n'
    )
    variants = tmp_path / "variants.jsonl"
    assert run("perturb", "code", "--jsonl", items, "-o", variants).returncode == 0
    words = ("--items", items, "--variants", variants, "--command", "false", "--out", tmp_path / "out")
    done = run("evaluate", "metamorphic", *words)
    assert (done.returncode, done.stderr) == (
        2, "simllm: error: no item has a draw on both sides; 2 of 2 draws crashed\n"
    )  # fmt: skip
    assert "answers.jsonl" in json.loads((tmp_path / "out" / ".simllm").read_text())["files"]
