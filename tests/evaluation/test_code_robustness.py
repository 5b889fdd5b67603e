"""Robustness of scores against code: the changes of code, figures by hand, the command, a real run."""

import json
from collections import Counter

import numpy as np
import pytest

from simllm import InputError
from simllm.cli.main import main
from simllm.evaluation.code_robustness import (
    MUTANT,
    OTHER,
    REWRITING,
    CodeEdits,
    make_code_edits,
    measure_code_robustness,
)
from simllm.metrics.interface import Example
from simllm.perturb.code.proof.mutants import make_mutants, mutants_by_kind
from simllm.perturb.code.proof.verdicts import ProofCase
from tests.chat_server import chat_server
from tests.conftest import ROOT

DATA = ROOT / "docs" / "examples" / "data"

COUNT = (
    "def count(items, limit):\n    total = 0\n    for item in items:\n"
    "        if item > limit:\n            total += 1\n        else:\n            total -= 1\n"
    "    return total\n"
)
JAVA = "int maxOf(int a, int b) { if (a >= b) { return a; } else { return b; } }"
FUNCTIONS = [
    Example("Counts the items above a limit.", None, COUNT, "python"),
    Example("Returns the larger of two numbers.", None, JAVA, "java"),
]


def test_changes_have_every_kind_and_depend_only_on_the_seed():
    edits = make_code_edits(FUNCTIONS, seed=1)
    assert make_code_edits(FUNCTIONS, seed=1).codes == edits.codes
    assert make_code_edits(FUNCTIONS, seed=2).codes != edits.codes
    assert set(edits.kinds) >= {REWRITING, OTHER, "update", "mirror", "relation", "number"}
    own = [FUNCTIONS[i].source for i in edits.function]
    assert all(code != source for code, source in zip(edits.codes, own, strict=True))
    rewritten = [code for code, kind in zip(edits.codes, edits.kinds, strict=True) if kind == REWRITING]
    assert "def count(" in rewritten[0]  # the name stays
    assert edits.codes[-2:] == [JAVA, COUNT]  # other code
    assert [one.language for one in edits.examples[-2:]] == ["java", "python"]  # its own language
    # Metrics of two texts read the words of the code as the reference.
    assert [one.candidate for one in edits.examples[:3]] == [
        FUNCTIONS[0].candidate, FUNCTIONS[1].candidate, FUNCTIONS[0].candidate,
    ]  # fmt: skip
    assert edits.examples[1].reference.startswith("int max of int a")


def test_as_many_mutants_as_asked_for():
    edits = make_code_edits(FUNCTIONS, seed=1, mutants=1)
    assert Counter(edits.function[[kind not in (REWRITING, OTHER) for kind in edits.kinds]].tolist()) == {
        0: 1, 1: 1,
    }  # fmt: skip


def test_mutants_by_kind_are_those_of_proofs():
    case = ProofCase("a", "python", COUNT, COUNT)
    found = mutants_by_kind(case, 3)
    assert list(found.values()) == make_mutants(case, 10, 3)
    assert "item < limit" in found["mirror"]
    assert found["relation"].count("item >= limit") == 1


def test_functions_that_cannot_be_changed_are_counted():
    more = [
        Example("a", None, "func f() int { return 1 }", "go"),
        Example("a", None, "def f(:", "python"),
        Example("a", None, "void f() { g(); }", "java"),
    ]
    edits = make_code_edits([*FUNCTIONS, *more], seed=1)
    assert len(edits.functions) == 2
    assert edits.left_out == {
        "not in Java or Python": 1,
        "not valid alone": 1,
        "without anything to change": 1,
    }


@pytest.mark.parametrize(
    ("functions", "options", "message"),
    [
        (FUNCTIONS[:1], {}, "of 1 functions, 1 can be changed; expected 2 or more in Java or Python"),
        ([], {}, "of 0 functions, 0 can be changed"),
        (FUNCTIONS, {"seed": -1}, "seed -1: expected 0 or a positive number"),
        (FUNCTIONS, {"mutants": 0}, "mutants 0: expected 1 or more"),
    ],
)
def test_too_few_functions_and_wrong_numbers_are_refused(functions, options, message):
    with pytest.raises(InputError, match=message):
        make_code_edits(functions, **{"seed": 1, **options})


def test_figures_by_hand():
    """Two functions score 1 and 3, so that the spread is 1; their versions score what is written below."""
    functions = [Example("s", None, "f"), Example("t", None, "g")]
    kinds = [REWRITING, REWRITING, "number", "sign", "number", OTHER, OTHER]
    edits = CodeEdits(functions, np.array([0, 1, 0, 0, 1, 0, 1]), ["x"] * 7, ["java"] * 7, kinds, Counter())
    scores = np.array([1, 3, 1.2, 2.9, 0.5, 1.0, 3.3, 0, 0])
    found = measure_code_robustness(scores, edits)
    assert found.spread == pytest.approx(1)
    assert found.value(REWRITING, "move") == pytest.approx((0.2 + 0.1) / 2)
    # The mutants of the first function: one falls, one is a tie; that of the second rises.
    assert found.value(MUTANT, "falls") == pytest.approx((0.75 + 0) / 2)
    assert found.value(MUTANT, "drop") == pytest.approx((0.25 - 0.3) / 2)
    assert found.value("number", "falls") == pytest.approx(0.5)
    assert found.value(OTHER, "drop") == pytest.approx((1 + 3) / 2)
    assert found.value(MUTANT, "auc") == pytest.approx(3 / 6)  # -0.5 < -0.1, and -0.5, 0 < 0.2
    assert found.unscored == 0
    assert np.isnan(found.figures[0].low)  # two functions have no interval


def test_versions_without_a_score_are_left_out_and_counted():
    functions = [Example("s", None, "f"), Example("t", None, "g")]
    kinds = [REWRITING, "number", "number", OTHER, OTHER]
    edits = CodeEdits(functions, np.array([0, 0, 1, 0, 1]), ["x"] * 5, ["java"] * 5, kinds, Counter())
    nan = np.nan
    found = measure_code_robustness(np.array([1, 3, 1.2, nan, 2.0, 0, nan]), edits)
    assert found.unscored == 2
    assert {(one.edit, one.count) for one in found.figures} >= {(MUTANT, 1), ("number", 1), (OTHER, 1)}
    assert found.value(MUTANT, "falls") == 1
    alike = measure_code_robustness(np.array([1, 1, 1, 1, 1, 1, 1.0]), edits)
    assert np.isnan(alike.value(REWRITING, "move"))
    assert alike.value(MUTANT, "falls") == 0.5


@pytest.fixture
def functions_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    rows = [{"candidate": one.candidate, "code": one.source, "language": one.language} for one in FUNCTIONS]
    (tmp_path / "functions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return "functions.jsonl"


def test_the_command(functions_file, capsys):
    command = ["evaluate", "robustness", "--jsonl", functions_file, "--metrics", "jaccard", "-f", "json"]
    assert main(command) == 0
    found = json.loads(capsys.readouterr().out)
    rows = {(row["edit"], row["figure"]): row for row in found["rows"]}
    # Words of a summary know nothing of what `>` does.
    assert rows["mirror", "falls"]["value"] == 0.5
    assert rows["mutant", "auc"]["low"] is None
    assert found["functions"] == 2
    assert "2 functions are few: each weighs much" in found["warnings"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--metrics", "lemod"], "metric lemod: expected a metric that scores a summary without a reference"),
        (["--metrics", "simllm-both"], "metric simllm-both: expected a metric that scores a summary"),
        (
            ["--metrics", "judge=judge.toml"],
            'metric judge=judge.toml: expected a judge with reads = "source"',
        ),
        (["--summaries", "x.txt"], "--summaries does not go with --jsonl"),
        (["--code-field", "body"], 'functions.jsonl, line 1: expected a text under "body"'),
    ],
)
def test_what_cannot_be_tested_is_one_line(functions_file, tmp_path, capsys, options, message):
    (tmp_path / "judge.toml").write_text('base_url = "http://127.0.0.1:1/v1"\nmodel = "m"\nreads = "both"\n')
    assert main(["evaluate", "robustness", "--jsonl", functions_file, *options]) == 2
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("\n")) == ("", 1)
    assert message in captured.err


def test_options_for_code_need_functions(capsys):
    assert main(["evaluate", "robustness", "--mutants", "2"]) == 2
    assert "--mutants goes with --jsonl" in capsys.readouterr().err


@pytest.mark.slow
def test_metrics_without_a_reference_tell_the_own_code_from_other_code(tmp_path, monkeypatch, capsys):
    """The models and a judge are run on the functions of the documentation, as its page does."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with chat_server() as server:
        # A judge that reads nothing but whether both numbers of the mutant are there.
        server.reply = lambda prompt: "Score: 5" if "attempts > 5" in prompt else "Score: 2"
        (tmp_path / "judge.toml").write_text(
            f'base_url = "{server.url}"\nmodel = "M"\nreads = "source"\ncache = "replies.jsonl"\n'
        )
        names = f"simllm-code,simllm-fits,simllm,jaccard,judge={tmp_path / 'judge.toml'}"
        command = ["evaluate", "robustness", "--jsonl", str(DATA / "documented.jsonl"), "--metrics", names]
        assert main([*command, "-f", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    rows = {(row["metric"], row["edit"], row["figure"]): row for row in found["rows"]}
    for name in ("simllm-code", "simllm-fits", "simllm"):
        assert rows[name, "other code", "falls"]["value"] == 1
        # What another function does matters much more than a rewriting.
        assert rows[name, "other code", "drop"]["low"] > 3 * rows[name, "rewriting", "move"]["value"]
    judged = f"judge={tmp_path / 'judge.toml'}"
    # It notices mirrored and widened comparisons in one of 8 functions, and no change elsewhere.
    assert rows[judged, "relation", "falls"]["value"] == pytest.approx((1 + 7 * 0.5) / 8)
    prompts = [body["messages"][-1]["content"] for _, _, body in server.requests]
    assert not any("A developer described" in prompt for prompt in prompts)
    assert len(prompts) == len(set(prompts))  # equal versions are asked about once
