"""Comparing systems: p-values by hand and by SciPy, and the real command."""

import json

import numpy as np
import pytest
from scipy import stats

from simllm import InputError, SimLLM
from simllm.analysis.comparison import compare, compared, holm
from tests.cli.test_commands import run


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]


def test_permutation_and_bootstrap_as_in_scipy():
    draw = np.random.default_rng(1)
    a, b = draw.normal(0.55, 0.2, 60), draw.normal(0.5, 0.2, 60)
    found = compared({"a": a, "b": b}).differences[0]
    difference = a - b
    permuted = stats.permutation_test(
        (a, b), lambda x, y: (x - y).mean(), permutation_type="samples", n_resamples=20_000, rng=0
    )
    assert found.permutation_p == pytest.approx(permuted.pvalue, abs=0.015)
    interval = stats.bootstrap((difference,), np.mean, method="percentile", rng=0).confidence_interval
    assert (found.low, found.high) == pytest.approx(interval, abs=0.003)
    assert found.bootstrap_p == pytest.approx(stats.ttest_1samp(difference, 0).pvalue, abs=0.03)


def test_systems_that_differ_and_such_that_do_not():
    draw = np.random.default_rng(2)
    a = draw.normal(0.5, 0.1, 200)
    found = compared({"a": a, "same": a.copy(), "worse": a - 0.05})
    same, worse, _ = found.differences
    assert (same.difference, same.bootstrap_p, same.permutation_p) == (0.0, 1.0, 1.0)
    assert worse.difference == pytest.approx(0.05)
    assert max(worse.bootstrap_p, worse.permutation_p) < 0.001
    assert found.wins.tolist() == [[0.5, 0.5, 1.0], [0.5, 0.5, 1.0], [0.0, 0.0, 0.5]]


def test_several_references(model_folder):
    metric = SimLLM(model_folder)
    systems = {"a": ["adds two", "gets it"], "b": ["removes", "adds two"]}
    references = [["adds it", "gets name"], ["sums two", "returns it"]]
    alone = [[metric.score(texts, r).values for r in references] for texts in systems.values()]
    for over in ("max", "mean"):
        found = compare(metric, systems, references, over)
        expected = [getattr(np, over)(values, axis=0).mean() for values in alone]
        assert [system.mean for system in found.systems] == pytest.approx(expected, abs=1e-6)
        assert found.signature.endswith(f"|references:2|over:{over}")
    with pytest.raises(InputError, match="over 'min': expected one of max, mean"):
        compare(metric, systems, references, "min")
    with pytest.raises(InputError, match="as many candidates of each system as references"):
        compare(metric, {"a": ["x"], "b": ["x", "y"]}, [["x"]])


@pytest.fixture
def systems(comments, tmp_path):
    lines = [" ".join(comment.split()) for comment in comments[:60]]
    for name, texts in {
        "refs": lines,
        "a_1": lines[:40] + lines[41:60] + lines[:1],
        "b": lines[::-1],
    }.items():
        (tmp_path / f"{name}.txt").write_text("".join(text + "\n" for text in texts))
    return tmp_path


def test_the_command(systems, model_folder):
    arguments = ("compare", "-r", "refs.txt", "-c", "a_1.txt", "b.txt", "--model", model_folder)
    result = json.loads(run(*arguments, "-f", "json", cwd=systems).stdout)
    assert [system["name"] for system in result["systems"]] == ["a_1", "b"]
    assert result["differences"][0]["permutation_p"] < 0.05
    text = run(*arguments, cwd=systems).stdout
    assert "permutation p" in text
    assert "wins over" in text
    latex = run(*arguments, "-f", "latex", cwd=systems).stdout
    assert "a\\_1 & $" in latex
    assert latex.count("\\\\") == 3
    (systems / "short.txt").write_text("x\n")
    done = run(*arguments[:4], "b.txt", "short.txt", cwd=systems)
    assert (done.returncode, done.stdout) == (2, "")
    assert "short.txt has 1 lines but refs.txt has 60" in done.stderr
