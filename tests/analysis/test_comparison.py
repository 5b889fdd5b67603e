"""Comparison of systems: the p-values equal hand-computed ones and SciPy's, and the command works."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from simllm import InputError, SimLLM
from simllm.analysis.comparison import compare, compare_scores, score_systems
from simllm.cli.main import main
from simllm.stats.resampling import sign_flip_p
from simllm.stats.significance import paired_effect
from simllm.text_cleaning import clean


def test_permutation_and_bootstrap_as_in_scipy():
    draw = np.random.default_rng(1)
    a, b = draw.normal(0.55, 0.2, 60), draw.normal(0.5, 0.2, 60)
    found = compare_scores({"a": a, "b": b}).differences[0]
    difference = a - b
    permuted = stats.permutation_test(
        (a, b), lambda x, y: (x - y).mean(), permutation_type="samples", n_resamples=20_000, rng=0
    )
    assert found.permutation_p == pytest.approx(permuted.pvalue, abs=0.015)
    interval = stats.bootstrap((difference,), np.mean, method="percentile", rng=0).confidence_interval
    assert (found.low, found.high) == pytest.approx(interval, abs=0.003)
    assert found.bootstrap_p == pytest.approx(stats.ttest_1samp(difference, 0).pvalue, abs=0.03)


def test_one_item_has_p_value_one():
    found = compare_scores({"a": np.array([0.9]), "b": np.array([0.1])})
    (difference,) = found.differences
    assert (difference.bootstrap_p, difference.permutation_p) == (1, 1)
    intervals = [(row.low, row.high) for row in (difference, *found.systems)]
    assert np.isnan(intervals).all()


def test_effect_size_and_the_smallest_difference_that_a_sample_can_show():
    draw = np.random.default_rng(3)
    a, b = draw.normal(0.6, 0.2, 40), draw.normal(0.5, 0.2, 40)
    found = compare_scores({"a": a, "b": b}).differences[0]
    assert found.effect == pytest.approx((a - b).mean() / (a - b).std(ddof=1))
    # 80% power of a t-test of 40 pairs at .05 two-sided: d = .4545, by the noncentral t distribution.
    assert found.detectable == pytest.approx(0.4545 * (a - b).std(ddof=1), rel=2e-3)
    true = found.detectable
    samples = draw.normal(true, (a - b).std(ddof=1), (2000, 40))
    significant = stats.ttest_1samp(samples, 0, axis=1).pvalue < 0.05
    assert significant.mean() == pytest.approx(0.8, abs=0.04)
    few = compare_scores({"a": a[:5], "b": b[:5]}).differences[0]  # whose p is at least .0625
    assert np.isnan(few.detectable)
    many = paired_effect(np.tile([0.0, 1.0], 5000))
    assert many.detectable == pytest.approx(2.8016 * 0.5 / 10_000**0.5, rel=1e-3)
    shifted = compare_scores({"a": a, "b": a - 0.1}).differences[0]
    assert np.isnan([shifted.effect, shifted.detectable]).all()


@pytest.mark.parametrize(("n", "tests"), [(6, 1), (7, 1), (8, 1), (10, 1), (8, 3), (13, 3)])
def test_few_items_show_the_detectable_difference_in_most_samples(n, tests):
    """With few items, the test's own p-values and the t distribution matter."""
    draw = np.random.default_rng(5)
    differences = draw.normal(0, 1, n)
    detectable = paired_effect(differences, tests).detectable / differences.std(ddof=1)
    samples = draw.normal(detectable, 1, (1000, n))
    swaps = 1 - 2.0 * (np.arange(2**n)[:, None] >> np.arange(n) & 1)
    p = [(np.abs(swaps @ one) >= abs(one.sum()) - 1e-9).mean() for one in samples]
    assert p[0] == sign_flip_p(samples[0], draw)
    assert 0.71 < (np.array(p) <= 0.05 / tests).mean() < 0.84


def test_a_baseline_takes_fewer_comparisons_and_a_milder_correction():
    draw = np.random.default_rng(4)
    scores = {name: draw.normal(mean, 0.2, 30) for name, mean in {"a": 0.5, "b": 0.6, "c": 0.62}.items()}
    everything = {(one.a, one.b): one for one in compare_scores(scores).differences}
    against = compare_scores(scores, baseline="a").differences
    assert [(one.a, one.b) for one in against] == [("b", "a"), ("c", "a")]
    for one in against:
        other = everything["a", one.a]
        assert one.difference == pytest.approx(-other.difference)
        assert one.bootstrap_p <= other.bootstrap_p
        assert one.detectable < other.detectable
    with pytest.raises(InputError, match="baseline 'z': expected one of the systems a, b, c"):
        compare_scores(scores, baseline="z")


def test_few_or_equal_items_have_no_interval():
    draw = np.random.default_rng(0)
    a, b = draw.normal(size=(2, 6))
    five, six = (compare_scores({"a": a[:n], "b": b[:n]}).differences[0] for n in (5, 6))
    assert np.isnan([five.low, five.high]).all()
    assert six.low < six.difference < six.high
    same = compare_scores({"a": a, "b": a}).differences[0]
    assert (same.difference, same.permutation_p) == (0, 1)
    assert np.isnan([same.low, same.high]).all()


@pytest.mark.parametrize("n", [2, 5, 9])
def test_p_values_of_few_items_use_all_sign_assignments(n):
    draw = np.random.default_rng(n)
    a, b = draw.normal(0.6, 0.2, n), draw.normal(0.5, 0.2, n)
    exact = stats.permutation_test(
        (a, b), lambda x, y: (x - y).mean(), permutation_type="samples", n_resamples=np.inf
    )
    assert compare_scores({"a": a, "b": b}).differences[0].permutation_p == pytest.approx(exact.pvalue)


@pytest.mark.parametrize("n", range(2, 9))
def test_p_values_are_not_below_those_of_a_sign_test(n):
    """If one system scores higher on all n items, the p-value of a two-sided sign test is 2^(1 - n)."""
    (found,) = compare_scores({"a": np.linspace(0.5, 0.9, n), "b": np.linspace(0.1, 0.2, n)}).differences
    assert found.bootstrap_p == found.permutation_p == 2 ** (1 - n)


def test_different_and_equal_systems():
    draw = np.random.default_rng(2)
    a = draw.normal(0.5, 0.1, 200)
    found = compare_scores({"a": a, "same": a.copy(), "worse": a - 0.05})
    same, worse, _ = found.differences
    assert (same.difference, same.bootstrap_p, same.permutation_p) == (0.0, 1.0, 1.0)
    assert worse.difference == pytest.approx(0.05)
    assert max(worse.bootstrap_p, worse.permutation_p) < 0.001
    assert found.wins.tolist() == [[0.5, 0.5, 1.0], [0.5, 0.5, 1.0], [0.0, 0.0, 0.5]]


def test_equal_texts_of_two_systems_get_equal_scores(head_folder, monkeypatch):
    """Each score gets another rounding error, as in computations with other texts beside it."""
    metric = SimLLM(head_folder)
    score = metric.score

    def score_with_errors(candidates, references):
        scores = score(candidates, references)
        errors = 1e-8 * np.arange(len(candidates))
        return replace(scores, values=scores.values + errors, same=scores.same + errors)

    monkeypatch.setattr(metric, "score", score_with_errors)
    texts = ["opens the file", "adds it. Returns two.", "closes a file"]
    systems = {"a": texts, "b": [text.upper() for text in texts], "c": texts[::-1]}
    scores = score_systems(metric, systems, [["opens it", "adds them", "closes it"]])
    assert (scores["a"].values == scores["b"].values).all()
    assert (scores["a"].same == scores["b"].same).all()
    assert (scores["a"].values != scores["c"].values).sum() == 2


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_texts_that_are_equal_only_after_cleaning_keep_their_own_scores(head_folder, order):
    metric = SimLLM(head_folder)
    texts = {
        "a": ["日本", "opens the file and reads it\n\ncloses the stream"],
        "b": ["中国", "opens the file and reads it closes the stream"],
    }
    references = ["日本", "opens the file and reads it closes the stream"]
    assert [clean(text) for text in texts["a"]] == [clean(text) for text in texts["b"]]
    scores = score_systems(metric, {name: texts[name] for name in order}, [references])
    for name, own in texts.items():
        assert scores[name].values == pytest.approx(metric.score(own, references).values, abs=1e-6)
    assert (scores["a"].values != scores["b"].values).all()


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
    with pytest.raises(InputError, match="one or more lists of references"):
        compare(metric, systems, [])
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


def test_command_with_one_pair(tmp_path, model_folder, capsys):
    for name, text in {"refs": "adds two", "a": "adds 2", "b": "sorts"}.items():
        (tmp_path / f"{name}.txt").write_text(text + "\n")
    files = [str(tmp_path / f"{name}.txt") for name in ("refs", "a", "b")]
    command = ["compare", "-r", files[0], "-c", *files[1:], "--model", str(model_folder)]
    assert main([*command, "-f", "json"]) == 0
    result = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert result["systems"][0]["low"] is None
    assert result["differences"][0]["bootstrap_p"] == result["differences"][0]["permutation_p"] == 1
    assert main(command) == 0
    assert "n/a" in capsys.readouterr().out
    assert main([*command, "-f", "latex"]) == 0
    assert "nan" not in capsys.readouterr().out


def test_the_command(systems, model_folder, capsys, monkeypatch):
    monkeypatch.chdir(systems)
    monkeypatch.setenv("COLUMNS", "80")
    arguments = ("compare", "-r", "refs.txt", "-c", "a_1.txt", "b.txt", "--model", str(model_folder))
    assert main([*arguments, "-f", "json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert [system["name"] for system in result["systems"]] == ["a_1", "b"]
    assert result["differences"][0]["permutation_p"] < 0.05
    assert main([*arguments]) == 0
    text = capsys.readouterr().out
    assert "…" not in text
    larger = max(result["differences"][0][f"{test}_p"] for test in ("bootstrap", "permutation"))
    assert f"  {larger:.4f}  " in text
    assert "wins over" in text
    assert main([*arguments, "-f", "latex"]) == 0
    latex = capsys.readouterr().out
    assert "a\\_1 & $" in latex
    assert latex.count("\\\\") == 3
    (systems / "short.txt").write_text("x\n")
    assert main([*arguments[:4], "b.txt", "short.txt"]) == 2
    assert capsys.readouterr() == ("", "simllm: error: short.txt has 1 line but refs.txt has 60\n")
