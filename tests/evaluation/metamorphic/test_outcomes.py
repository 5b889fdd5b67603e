"""Outcomes of answers, and what a tool and a judge get of an item."""

import json
import sys

import pytest

from simllm import InputError
from simllm.cli.main import main
from simllm.evaluation.metamorphic.commands import check_files
from simllm.evaluation.metamorphic.judges import outcome_of
from simllm.evaluation.metamorphic.tool import fields_for


@pytest.mark.parametrize(
    ("status", "printed", "outcome"),
    [
        ("0", "", "plausible"),
        ("0", "3 passed\n", "plausible"),
        ("1", "", "failing"),
        ("137", "", "failing"),
        ("124", "", "timeout"),
        ("timeout", "plausible", "timeout"),
        ("too long", "", "failing"),
        ("1", "error: x\nuncompilable\n", "uncompilable"),
        ("0", "failing\n\n", "failing"),
        ("0", "  uncompilable  \r\n", "uncompilable"),
        ("1", "timeout", "timeout"),
        ("0", "failing\n3 passed", "plausible"),
        # A judge that dies after its last line did not end as it should.
        ("1", "plausible", "failing"),
        ("0", "not plausible", "plausible"),
    ],
)
def test_the_last_line_or_the_exit_status_tells_the_outcome(status, printed, outcome):
    assert outcome_of(status, printed) == outcome


ITEM = {
    "id": "total",
    "language": "python",
    "source": "def total(n):\n    return n\n",
    "reference": "secret",
    "label": "secret",
    "failing_test": "assert total(2) == 3  # total",
    "trace": ["File test.py, in test_total", {"at": "total"}],
    "files": {"tests/test_total.py": "from code import total\n"},
    "where": "items.jsonl, line 1",
}
VARIANT = {
    "id": "total",
    "text": "def whole(count):\n    return count\n",
    "names": {"total": "whole", "n": "count"},
}


def test_a_tool_sees_the_fields_with_the_names_of_its_code():
    shown = fields_for(ITEM)
    assert shown == {
        "id": "total",
        "language": "python",
        "failing_test": "assert total(2) == 3  # total",
        "trace": ["File test.py, in test_total", {"at": "total"}],
        "files": {"tests/test_total.py": "from code import total\n"},
    }
    renamed = fields_for(ITEM, VARIANT)
    assert renamed["id"] == "total"
    assert renamed["failing_test"] == "assert whole(2) == 3  # whole"
    assert renamed["trace"][1] == {"at": "whole"}
    assert renamed["files"] == {"tests/test_total.py": "from code import whole\n"}


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"/a": ""}, "is not a path for a file"),
        ({"a/../b": ""}, "is not a path for a file"),
        ({"": ""}, "is not a path for a file"),
        ({"item.json": ""}, "is not a path for a file"),
        ({"item.json/a": ""}, "is not a path for a file"),
        ({"//a": ""}, "is not a path for a file"),
        ({"a" * 256: ""}, "is not a path for a file"),
        ({"a": 1}, "expected texts by path"),
        (["a"], "expected texts by path"),
        ({"a": "", "a/b": ""}, "lies in another file"),
    ],
)
def test_files_stay_in_their_folder(files, message):
    with pytest.raises(InputError, match=message):
        check_files({"files": files}, "line 1")


TOOL = """import json, os, sys
folder = os.environ["SIMLLM_FOLDER"]
fields = json.load(open(folder + "/item.json"))
assert fields["id"] == os.environ["SIMLLM_ID"] == sys.argv[1]
assert "label" not in fields and "reference" not in fields
test = open(folder + "/tests/test_it.py").read()
code = sys.stdin.read()
# The test calls the function by the name that the code has.
assert test.split("(")[0] in code, (test, code)
print("Here:\\n```python\\n" + code.replace("n + 1", "n") .replace("count + 1", "count") + "```")
"""
JUDGE = """import json, os, sys
fields = json.load(open(os.environ["SIMLLM_FOLDER"] + "/item.json"))
code = sys.stdin.read()
names = {}
try:
    exec(code, names)
except SyntaxError:
    print("uncompilable")
    sys.exit(1)
sys.exit(names["total"](2) != fields["expected"])
"""


def test_fields_files_and_outcomes_reach_both_commands(tmp_path):
    items = [
        {
            "id": f"total-{n}",
            "language": "python",
            "source": "def total(n):\n    return n + 1\n",
            "files": {"tests/test_it.py": "total(2)"},
            "label": "x",
            "expected": 2 + (n == 0),
        }
        for n in range(3)
    ]
    (tmp_path / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in items))
    (tmp_path / "tool.py").write_text(TOOL)
    (tmp_path / "judge.py").write_text(JUDGE)
    given = ["--items", str(tmp_path / "items.jsonl")]
    assert (
        main(["perturb", "code", "--jsonl", given[1], "--variants", "2", "-o", str(tmp_path / "v.jsonl")])
        == 0
    )
    given += ["--variants", str(tmp_path / "v.jsonl"), "--restore", "--code"]
    given += ["--command", f"{sys.executable} {tmp_path / 'tool.py'} {{id}}"]
    given += ["--judge", f"{sys.executable} {tmp_path / 'judge.py'}", "--out", str(tmp_path / "out")]
    assert main(["evaluate", "metamorphic", *given]) == 0
    found = json.loads((tmp_path / "out" / "metamorphic.json").read_text())["tools"][""]
    none = {"uncompilable": 0, "timeout": 0}
    assert found["crashes"] == {"original": 0, "transformed": 0}
    assert found["outcome_counts"] == {
        "original": {"plausible": 2, "failing": 1, **none},
        "transformed": {"plausible": 4, "failing": 2, **none},
    }
    page = (tmp_path / "out" / "report.html").read_text()
    assert "<h3>Outcomes</h3>" in page


def test_answers_without_code_are_uncompilable(tmp_path, capsys):
    rows = [
        {"id": "a", "side": side, "output": text}
        for side, text in (
            ("original", "```java\nint f() { return 1; }\n```"),
            ("transformed", "I cannot do this."),
        )
    ]
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    item = {"id": "a", "language": "java", "source": "int f() { return 2; }"}
    (tmp_path / "i.jsonl").write_text(json.dumps(item) + "\n")
    given = ["--recorded", str(tmp_path / "r.jsonl"), "--items", str(tmp_path / "i.jsonl"), "--code"]
    given += ["--judge", "grep -q 'return 1'", "--out", str(tmp_path / "out")]
    assert main(["evaluate", "metamorphic", *given]) == 0
    assert "1 of 2 answers have no code, and are uncompilable" in capsys.readouterr().err
    found = json.loads((tmp_path / "out" / "metamorphic.json").read_text())["tools"][""]
    assert found["outcome_counts"]["transformed"]["uncompilable"] == 1


def test_recorded_outcomes_are_read_and_checked(tmp_path, capsys):
    file = tmp_path / "r.jsonl"

    def run(*rows):
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return main(["evaluate", "metamorphic", "--recorded", str(file), "--out", str(tmp_path / "out")])

    one = {"id": "a", "side": "original", "outcome": "plausible"}
    assert run(one, {"id": "a", "side": "transformed", "outcome": "timeout"}) == 0
    found = json.loads((tmp_path / "out" / "metamorphic.json").read_text())["tools"][""]
    assert found["outcome_counts"]["transformed"]["timeout"] == 1
    assert run(one, {"id": "a", "side": "transformed", "success": True}) == 0
    assert "1 of 2 draws have a success, but no outcome" in capsys.readouterr().err
    for row, message in [
        ({"outcome": "passed"}, "expected one of plausible, failing, uncompilable, timeout under outcome"),
        ({"outcome": "failing", "success": True}, "the outcome failing contradicts the success True"),
        ({"success": True, "variant": "x"}, "expected a number under variant"),
        ({"success": True, "variant": 1}, "an original has no number under variant"),
        ({"success": True, "counts": {"a": -1}}, "expected numbers of places by rule"),
    ]:
        assert run({"id": "a", "side": "original", **row}) == 2
        assert message in capsys.readouterr().err
