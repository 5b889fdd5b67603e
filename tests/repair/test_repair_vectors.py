"""Reference results for repair: syntax trees and verdicts of replies, and figures of the authors' runs."""

import re

import pytest

from simllm.code.reply import code_of_reply
from simllm.code.tree_distance import PatchSize, syntax_tree, tree_edit_distance
from simllm.execution.limits import Limits
from simllm.execution.program_verdicts import JudgeTest, judge
from simllm.metrics.code.trees import ratio_of_sizes
from simllm.stats.classification import average_pass_rate, pass_at_k
from tests.execution.conftest import sandbox  # noqa: F401 (a fixture)


def code_in(reply, item):
    return code_of_reply(reply, item["language"], is_program=True, source=item["code"]).text


def test_trees_of_all_replies(vectors):
    data = vectors("items")
    for item in data["items"]:
        code = syntax_tree(item["code"], item["language"])
        for name, expected in data["trees"][item["id"]].items():
            reply = code_in(data["replies"][item["id"]][name], item)
            tree = syntax_tree(reply, item["language"])
            assert len(tree) == expected["nodes"], (item["id"], name)
            distance = tree_edit_distance(code, tree)
            assert distance == expected["distance from the incorrect code"], (item["id"], name)


@pytest.mark.slow
def test_verdicts_of_all_replies(vectors, sandbox):  # noqa: F811
    data = vectors("items")
    for item in data["items"]:
        tests = [JudgeTest(**test) for test in item["tests"]]
        limits = Limits(time=item["time"], memory=item["memory"])
        for name, expected in data["verdicts"][item["id"]].items():
            code = code_in(data["replies"][item["id"]][name], item)
            found = judge(sandbox, item["language"], code, tests, limits)
            assert found.verdict == expected["verdict"], (item["id"], name)
            assert [test.verdict for test in found.tests] == expected["tests"], (item["id"], name)


@pytest.mark.parametrize(("strategy", "rounds"), [("single", 1), ("cref", 3)])
def test_figures_of_the_authors_runs(strategy, rounds, vectors):
    scripts, sessions = vectors("items")["scripts"], vectors("sessions")
    run, trees = sessions["runs"][strategy], sessions["libclang trees"]
    judged = iter(run["judged"])
    passed, sizes = [], []
    for id_ in run["items"]:
        accepted, made = [], []
        for script in scripts[id_]:
            verdicts = [next(judged)]
            while verdicts[-1] != "AC" and len(verdicts) < rounds:
                verdicts.append(next(judged))
            accepted.append(verdicts[-1] == "AC")
            last = script[len(verdicts) - 1]
            made.append(size(trees[id_]["empty program" if last == "prose" else last]))
        passed.append(accepted)
        sizes.append((made, size(trees[id_]["fix"])))
    assert next(judged, None) is None
    pattern = r"TOP-3: \d+\(([\d.]+)%\), AVG-3: [\d.]+\(([\d.]+)%\), RPSR: ([\d.]+) TOT: 3"
    top, average, rpsr = re.fullmatch(pattern, run["printed by the authors"]).groups()
    assert f"{100 * pass_at_k(passed, 3):.1f}" == top
    assert f"{100 * average_pass_rate(passed):.1f}" == average
    assert f"{ratio_of_sizes(sizes):.3f}" == rpsr


def size(tree):
    """Return a `PatchSize` with the published numbers of edits and nodes."""
    nodes = tree["nodes of the incorrect code"]
    return PatchSize(int(tree["distance"]), nodes, max(nodes, tree["nodes"]))
