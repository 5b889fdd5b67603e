"""`simllm evaluate metamorphic`: runs of the tested tool, checks of its answers, resuming, and bad input."""

import json
import signal
import subprocess
import sys
import time

import pytest

from tests.browser import check_page, needs_browser
from tests.command import is_running, run

pytestmark = pytest.mark.slow  # many processes

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
        *(
            "perturb",
            "code",
            "--jsonl",
            tmp_path / "items.jsonl",
            "--rules",
            "rename-function,rename-parameter",
        ),
        *("--names", "plain", "-o", tmp_path / "variants.jsonl", "--overwrite"),
    )
    assert done.returncode == 0, done.stderr
    (tmp_path / "tool.py").write_text("import sys\nprint(sys.stdin.read())\n")
    names = {"item0": "f0", "item1": "f1", "item2": "f2", "item3": "g", "item4": "crash"}
    (tmp_path / "judge.py").write_text(
        f"import os, sys\nname = {names}[os.environ['SIMLLM_ID']]\n"
        "sys.exit(f'int {name}(int p0)' not in sys.stdin.read().replace('int a', 'int p0'))\n"
    )
    judge = f"{sys.executable} {tmp_path / 'judge.py'}"
    for more, share in ([], 0.0), (["--restore"], 1.0):
        done = run("evaluate", "metamorphic", *study, "--judge", judge, *more)
        assert done.returncode == 0, done.stderr
        found = json.loads((tmp_path / "out" / "metamorphic.json").read_text())
        assert found["tools"][""]["mean"]["transformed"] == share
        assert found["restored"] == (5 if more else None)
        assert ("put back into 5 answers" in (tmp_path / "out" / "report.html").read_text()) == bool(more)


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
        ([ROW | {"nll": 10**400}], "line 1: expected a number under nll, not a longer value"),
        ([ROW | {"nll": float("inf")}], "line 1: expected a number under nll, not inf"),
        ([ROW | {"original": [10**400, 10**400]}], "line 1: expected [successes, draws] under original"),
        ([ROW | {"modell": "x"}], "line 1: unknown field modell; did you mean model?"),
        ([{"id": "a", "side": "left", "success": True}], "line 1: expected the side original or transformed"),
        ([{"id": "a", "side": "original"}], "line 1: expected outcome, success, output or crashed"),
        (
            [{"id": "a", "side": "original", "draw": True, "success": 1}],
            "expected a number under draw, not True",
        ),
        ([ROW | {"unchanged": "no"}], "line 1: expected true or false under unchanged, not 'no'"),
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
        (
            ["--recorded", "r", "--metric", "simllm-code", "--threshold", "1"],
            "--metric simllm-code: reads code; expected a metric that compares two texts",
        ),
        (["--recorded", "r", "--judge", "x", "--metric", "bleu", "--threshold", "1"], "name one"),
        (["--command", "x", "--items", "i", "--variants", "v", "--draws", "0"], "expected --draws and"),
        (["--command", "x", "--items", "i", "--variants", "v", "--draws", "9" * 30], "from 1 to 10,000"),
        (["--recorded", "r", "--metric", "bleu", "--threshold", "nan"], "--threshold nan: expected a number"),
        (["--recorded", "r", "--judge", "x", "--timeout", "inf"], "expected --timeout above 0 and at most"),
        (["--recorded", "r", "--judge", "x", "--timeout", "nan"], "expected --timeout above 0 and at most"),
        (["--command", "x {side}", "--items", "i", "--variants", "v"], "only replaced in --judge"),
        (
            ["--recorded", "r", "--judge", "sh -c 'run {id}'"],
            "{id} in 'run {id}' of the judge's command may run as code",
        ),
        (["--recorded", "r", "--judge", "x", "--parallel", "0"], "expected --draws and --parallel from 1"),
        (["--recorded", "r", "--model", "m"], "--model goes with --metric simllm or simllm-same"),
        (["--recorded", "r", "--draws", "1"], "--draws goes with --command"),
        (["--recorded", "r", "--judge", "x", "--draws", "4"], "--draws goes with --command"),
        (["--recorded", "r", "--parallel", "1"], "--parallel goes with --command or --template or --judge"),
        (["--recorded", "r", "--timeout", "3"], "--timeout goes with --command or --judge"),
        (["--recorded", "r"], "r: "),
        (
            ["--command", "a 'b", "--items", "i", "--variants", "v"],
            '--command: "a \'b": No closing quotation',
        ),
        (["--command", "  ", "--items", "i", "--variants", "v"], "--command: ' ': expected a command"),
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
    assert (done.returncode, done.stderr.splitlines()) == (2, [
        "simllm: warning: 2 runs of the command crashed: 2 with exit status 1",
        "simllm: error: no item has a draw on both sides; 2 of 2 draws crashed",
    ])  # fmt: skip
    assert "answers.jsonl" in json.loads((tmp_path / "out" / ".simllm").read_text())["files"]


PERFECT_TOOL = """import ast, sys
function = ast.parse(sys.stdin.read()).body[0]
values, wanted = (one.arg for one in function.args.args)
print(f"def {function.name}({values}, {wanted}):\\n    return {values}.count({wanted})")
"""
PERFECT_JUDGE = """import sys
space = {}
exec(sys.stdin.read(), space)
(function,) = (one for name, one in space.items() if name != "__builtins__")
sys.exit(function([3, 4, 3], 3) != 2)
"""


def test_a_perfect_tool_is_perfect_with_and_without_restoring(tmp_path):
    """The tool calls the method `count`; the new name of a parameter or function may be the same word."""
    source = "def {id}(xs, n):\n    s = 0\n    for x in xs:\n        s += x == n\n    return s + 1\n"
    rows = [{"id": f"cnt{i}", "language": "python", "source": source.format(id=f"cnt{i}")} for i in range(6)]
    names = {"xs": "items", "n": "count", "s": "total", "x": "value"}
    (tmp_path / "items.jsonl").write_text("".join(json.dumps(row | {"names": names}) + "\n" for row in rows))
    done = run("perturb", "code", "--jsonl", tmp_path / "items.jsonl", "-o", tmp_path / "variants.jsonl")
    assert done.returncode == 0, done.stderr
    row = json.loads((tmp_path / "variants.jsonl").read_text().splitlines()[0])
    assert names.items() <= row["names"].items()
    assert "cnt0" not in row["text"]
    (tmp_path / "tool.py").write_text(PERFECT_TOOL)
    (tmp_path / "judge.py").write_text(PERFECT_JUDGE)
    study = ("--items", tmp_path / "items.jsonl", "--variants", tmp_path / "variants.jsonl")
    study += ("--command", f"{sys.executable} {tmp_path / 'tool.py'}", "--out", tmp_path / "out")
    for more in ([], ["--restore"]):
        done = run(
            "evaluate", "metamorphic", *study, "--judge", f"{sys.executable} {tmp_path / 'judge.py'}", *more
        )
        assert done.returncode == 0, done.stderr
        mean = results(tmp_path)["mean"]
        assert (mean["original"], mean["transformed"]) == (1.0, 1.0)


def judged(tmp_path, item, *words):
    """Judge one answer on both sides by a command."""
    rows = [{"id": item, "side": side, "output": "x"} for side in ("original", "transformed")]
    (tmp_path / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    recorded = ("--recorded", tmp_path / "results.jsonl", "--out", tmp_path / "out")
    return run("evaluate", "metamorphic", *recorded, "--judge", *words, cwd=tmp_path)


@pytest.mark.parametrize(
    "judge",
    [
        "sh -c 'touch {id}'",
        "bash -lc {id}",
        "env -S {id}",
        "{id} --run",
        "python -c {id}",
        "perl --eval={id}",
        "ssh host run {id}",
        "sudo {id}",
        "./run '$(cat {id})'",
        "timeout 5 sh -c 'echo {id}'",
    ],
)
def test_an_id_is_not_put_where_it_may_run(tmp_path, judge):
    done = judged(tmp_path, "harmless", judge)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "may run as code; pass it as a word of its own" in done.stderr


@pytest.mark.parametrize(
    ("judge", "item"),
    [
        ("sh -c 'exit $1' sh {id}", "0; touch PWNED"),
        ("true {id}", "--help"),
        ("true --test={id}/x", "../../etc"),
        ("true {id}", "a\0b"),
    ],
)
def test_an_id_that_a_command_may_misread_is_refused(tmp_path, judge, item):
    done = judged(tmp_path, item, judge)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "cannot be put into the judge's command; read the environment variable SIMLLM_ID" in done.stderr


@pytest.mark.parametrize("judge", ["{here}/run {id} {side}", "sh -c './run \"$SIMLLM_ID\" $SIMLLM_SIDE'"])
def test_an_id_reaches_the_judge_as_it_is(tmp_path, judge):
    item = "Lang-1 {side}; touch PWNED"
    (tmp_path / "run").write_text('#!/bin/sh\nprintf "%s %s\\n" "$1" "$2" >> seen\n')
    (tmp_path / "run").chmod(0o755)
    done = judged(tmp_path, item, judge.replace("{here}", str(tmp_path)))
    assert done.returncode == 0, done.stderr
    seen = (tmp_path / "seen").read_text().splitlines()
    assert sorted(seen) == [f"{item} original", f"{item} transformed"]
    assert not (tmp_path / "PWNED").exists()


def test_a_judge_that_fails_itself_is_told(tmp_path):
    done = judged(tmp_path, "a", "sh -c 'exit 127'")
    told = json.loads((tmp_path / "out" / "metamorphic.json").read_text())["warnings"]
    assert told[0] == "the judge crashed or was not found on 2 of 2 answers, which count as failures"
    assert (
        "warning: the judge crashed or was not found on 2 of 2 answers, which count as failures"
        in done.stderr
    )


def test_a_judge_that_prints_too_much_is_told(tmp_path):
    done = judged(tmp_path, "a", "sh -c 'head -c 20000000 /dev/zero; echo plausible'")
    assert "the judge printed more than 16 MiB on 2 of 2 answers, which count as failures" in done.stderr
    assert results(tmp_path)["mean"]["original"] == 0


def test_a_judge_that_leaves_processes_behind_is_not_waited_for(tmp_path):
    done = judged(tmp_path, "a", f"sh -c 'sleep 600 & echo $! >> {tmp_path}/pids; exit 0'")
    assert done.returncode == 0, done.stderr
    assert results(tmp_path)["mean"]["original"] == 1
    wait_for(lambda: not any(map(is_running, (tmp_path / "pids").read_text().split())))


def wait_for(condition):
    deadline = time.monotonic() + 30
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert condition()


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_commands_end_with_the_study(study, tmp_path, end):
    pids = tmp_path / "pids"
    (tmp_path / "tool.sh").write_text(f"sleep 600 & echo $! $$ >> {pids}; wait\n")
    study[study.index("--command") + 1] = f"sh {tmp_path / 'tool.sh'}"
    command = [sys.executable, "-m", "simllm", "evaluate", "metamorphic", *map(str, study), "--parallel", "2"]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        wait_for(lambda: pids.exists() and len(pids.read_text().split()) == 4)
        process.send_signal(end)
        process.wait(30)
        running = pids.read_text().split()
        wait_for(lambda: not any(map(is_running, running)))
        assert not (tmp_path / "out" / "answers.jsonl").exists()  # the killed commands are no crashes
    finally:
        process.kill()


def test_an_answer_without_end_and_a_late_one_are_crashes(study, tmp_path):
    tool = "import os, sys, time\ncode = sys.stdin.read()\n"
    tool += "while 'f1' in code: sys.stdout.write('x' * 10**6)\n"
    tool += "if 'f2' in code: os.system('sleep 60 & sleep 60')\nprint('True java 0')\n"
    (tmp_path / "tool.py").write_text(tool)
    done = run("evaluate", "metamorphic", *study, "--timeout", "2", "--parallel", "4")
    assert done.returncode == 0, done.stderr
    assert "with timeout" in done.stderr
    assert "with answer above 16 MiB" in done.stderr
    assert "so are 2 items (item1, item2), with no answer on a side" in done.stderr
    warnings = json.loads((tmp_path / "out" / "metamorphic.json").read_text())["warnings"]
    assert [line for line in warnings if "crashed" in line]


def recorded(tmp_path, rows, *words):
    (tmp_path / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = run(
        *(
            "evaluate",
            "metamorphic",
            "--recorded",
            tmp_path / "results.jsonl",
            "--out",
            tmp_path / "out",
            *words,
        )
    )
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "out" / "metamorphic.json").read_text())
    page = (tmp_path / "out" / "report.html").read_text()
    told = [line.removeprefix("simllm: warning: ") for line in done.stderr.splitlines()]
    assert told == found["warnings"]
    assert all(sentence.split(" (")[0] in page for sentence in told)
    return told, found["tools"][""]["mean"]


@pytest.mark.parametrize(
    ("pairs", "sentence", "has_interval"),
    [
        ([([5, 5], [0, 5])] * 3, "3 items of the tool are too few: p cannot fall below 0.25", False),
        (
            [([5, 5], [i, 5]) for i in range(5)],
            "5 items of the tool are too few: p cannot fall below 0.062",
            False,
        ),
        (
            [([5, 5], [2, 5])] * 8,
            "all items of the tool have the same difference: there is no interval",
            False,
        ),
        ([([2, 5], [2, 5])] * 8, "no item of the tool differs between original and variant", False),
        ([([0, 5], [0, 5])] * 8, "the tool succeeds in 0 of 40 draws on originals; no loss can show", False),
        ([([4, 5], [0, 5]), *[([5, 5], [0, 5])] * 7], "the tool succeeds in 0 of 40 draws on variants", True),
        (
            [([4, 5], [1, 4]), *[([5, 5], [1, 5])] * 7],
            "1 item (i0) of the tool has more draws on one side",
            True,
        ),
    ],
)
def test_figures_that_mean_little_are_told_everywhere(tmp_path, pairs, sentence, has_interval):
    rows = [{"id": f"i{n}", "original": a, "transformed": b} for n, (a, b) in enumerate(pairs)]
    told, mean = recorded(tmp_path, rows)
    assert any(sentence in line for line in told), told
    assert (mean["low"] is not None, mean["high"] is not None) == (has_interval, has_interval)


def test_unchanged_variants_and_missing_likelihoods_are_told(tmp_path):
    rows = [
        {
            "id": f"i{n}",
            "original": [5, 5],
            "transformed": [n, 9],
            "unchanged": True,
            **({"nll": 1} if n else {}),
        }
        for n in range(8)
    ]
    told, _ = recorded(tmp_path, rows)
    assert "8 of 8 variants of the tool equal their originals; the study shows noise alone" in told
    assert "1 of 8 items have no negative log-likelihood" in told
    assert "the correlation of the tool with the negative log-likelihood is not defined" in told


def test_good_data_give_no_warning(tmp_path):
    rows = [{"id": f"i{n}", "original": [5, 9], "transformed": [n, 9]} for n in range(8)]
    assert recorded(tmp_path, rows)[0] == []


def test_items_without_variants_or_results_are_told(study, tmp_path):
    lines = (tmp_path / "variants.jsonl").read_text().splitlines()
    kept = [line for line in lines if json.loads(line)["id"] not in ("item0", "item3")]
    (tmp_path / "variants.jsonl").write_text("\n".join(kept) + "\n")
    done = run("evaluate", "metamorphic", *study)
    assert done.returncode == 0, done.stderr
    assert "2 items (item0, item3) have no usable variant, and cannot count" in done.stderr
    rows = [{"id": "item1", "original": [1, 2], "transformed": [0, 2]}]
    told, _ = recorded(tmp_path, rows, "--items", tmp_path / "items.jsonl")
    assert "4 items (item0, item2, item3, …) have no results" in told


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [("names", ["a"], "new by old names under names"), ("counts", {"a": "x"}, "counts by rule under counts")],
)
def test_damaged_variants_give_file_and_line(study, tmp_path, field, value, message):
    row = json.loads((tmp_path / "variants.jsonl").read_text().splitlines()[0]) | {field: value}
    (tmp_path / "variants.jsonl").write_text(json.dumps(row) + "\n")
    done = run("evaluate", "metamorphic", *study)
    assert done.returncode == 2
    assert f"variants.jsonl, line 1: expected {message}" in done.stderr
