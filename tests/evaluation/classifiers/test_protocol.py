"""The evaluation of classifiers by the ECSER protocol gives reference results, in Python and by command."""

import json

import numpy as np
import pytest

from simllm.evaluation import classifiers
from simllm.evaluation.classifiers.groups import measure_fairness, measure_robustness
from simllm.evaluation.classifiers.metrics import mean_metrics, measure
from simllm.evaluation.classifiers.report import write_conclusions
from tests.browser import check_page, needs_browser
from tests.command import run


@pytest.fixture(scope="module")
def vectors(shared):
    return json.loads((shared / "reference" / "protocol.json").read_text())


def write(file, rows):
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


@pytest.fixture(scope="module")
def published(vectors, tmp_path_factory):
    """Write the published predictions, one file for each classifier; return the files."""
    data, folder, rows = vectors["published"], tmp_path_factory.mktemp("published"), {}
    for part in data["sets"]:
        facts = {"split": part["split"], "variant": part["variant"]}
        made = (dict(zip(data["columns"], values, strict=True)) | facts for values in part["rows"])
        rows.setdefault(part["classifier"], []).extend(made)
    return [write(folder / f"{name}.jsonl", each) for name, each in rows.items()]


def close(found, expected, name, tolerance=1e-9):
    assert (found is None) == (expected is None), name
    if expected is not None:
        assert found == pytest.approx(expected, abs=tolerance), name


def check(found, expected):
    """Check that the figures of a classifier equal the expected ones; both are JSON objects."""
    assert (found["n"], found["unparsed"]) == (expected["n"], expected.get("unparsed", 0))
    if "tp" in expected:
        assert found["matrix"] == [[expected["tp"], expected["fn"]], [expected["fp"], expected["tn"]]]
    if "matrix" in expected:
        assert found["matrix"] == expected["matrix"]
    for name, value in expected["metrics"].items():
        close(found["metrics"][name]["value"], value, name)
    for name, interval in expected.get("intervals", {}).items():
        if interval and interval[0] == interval[1]:  # DeLong's interval of a perfect AUC looks too certain
            assert found["metrics"][name]["low"] < found["metrics"][name]["high"] == interval[1] == 1
            continue
        for end, value in zip(("low", "high"), interval or (None, None), strict=True):
            close(found["metrics"][name][end], value, name)
    for name, value in expected.get("strict", {}).items():
        close(found["strict"][name], value, f"strict {name}")
    assert found["undefined"] == expected.get("undefined", found["undefined"])
    for kind, figures in expected.get("calibration", {}).items():
        check_calibration(found["calibration"][kind], figures)
    assert found["other_side"] == expected.get("other_side", found["other_side"])
    if "consistency" in expected:
        drawn, own = expected["consistency"], found["calibration"]["positive"]
        close(own["expected_if_calibrated"], drawn["expected_if_calibrated"], "drawn", 0.005)
        close(own["p"], drawn["p"], "p", 0.01)
    for label, row in expected.get("per_class", {}).items():
        for name, value in row.items():
            close(found["per_class"][label][name], value, f"{label} {name}")


def check_calibration(found, expected):
    for name, value in expected.items():
        if name == "bins":
            assert len(found["bins"]) == len(value)
            for one, other in zip(found["bins"], value, strict=True):
                assert (one["bin"], one["n"]) == (other["bin"], other["n"])
                close(one["confidence"], other["confidence"], name)
                close(one["rate"], other["rate"], name)
        else:
            close(found[name], value, name, 1e-6)


def evaluated(tmp_path, *words):
    """Run `simllm evaluate classifiers`, and return the content of `classifiers.json`."""
    done = run("evaluate", "classifiers", *words, "--out", tmp_path / "report", "-q")
    assert done.returncode == 0, done.stderr
    return json.loads((tmp_path / "report" / "classifiers.json").read_text())


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["binary", "multiclass"])
def test_metrics_and_calibration_of_the_vectors(vectors, tmp_path, kind):
    cases = [case for case in vectors["cases"] if case["kind"] == kind]
    assert len(cases) == {"binary": 9, "multiclass": 3}[kind]
    for number, case in enumerate(cases):
        file = write(tmp_path / f"{number}.jsonl", case["rows"])
        words = ["--positive", case["positive"]] if kind == "binary" else []
        report = tmp_path / str(number)
        report.mkdir()
        found = evaluated(report, file, *words)["classifiers"][str(number)]["splits"]["test"]
        check(found, case["expected"])


@pytest.mark.slow
def test_published_study_through_the_command(vectors, published, tmp_path):
    words = ["--positive", "fail", "--groups", "suite,complexity", "--matrix", "gpt-4=71,9,29,91"]
    found = evaluated(tmp_path, *published, *words)
    data = vectors["published"]
    for part in data["sets"]:
        split = found["classifiers"][part["classifier"]]["splits"][part["split"]]
        own = split["variants"][part["variant"]] if part["variant"] else split
        check(own, part["expected"])
        for name, printed in part.get("printed", {}).items():
            value = own["calibration"]["positive"]["ece"] if name == "ece" else own["metrics"][name]["value"]
            assert round(value + 1e-12, 3) == printed, (part["classifier"], name)
    persona = found["classifiers"]["persona"]
    for group, parts in data["parts_of_persona_test"].items():
        for value, part in parts.items():
            own = persona["splits"]["test"]["groups"][group][value]
            check(own, part["expected"])
            close(own["calibration"]["positive"]["ece"], part["expected"]["ece"], "ece", 1e-6)
    variant, expected = persona["robustness"]["variants"]["charswap"], data["robustness_of_persona_test"]
    for name in ("n", "pdr", "asr", "lost", "recovered", "flipped", "test", "p"):
        assert variant[name] == pytest.approx(expected["charswap"][name]), name
    for name in ("difference", "z", "p"):
        close(variant["auc"][name], expected["charswap"]["delong"][name], name)
    assert persona["robustness"]["robust_accuracy"] == expected["robust_accuracy_original_and_charswap"]
    for name, value in data["degradation_of_persona"]["expected"].items():
        close(persona["degradation"][name], value, name)
    for name, value in data["matrix_only"]["metrics"].items():
        close(found["classifiers"]["gpt-4"]["splits"]["test"]["metrics"][name]["value"], value, name)
    assert (
        found["selected"]
        == data["choice_on_validation"]["by mcc among zeroshot, fewshot, persona, refinement-llama"]
    )


@pytest.mark.slow
def test_significance_of_the_published_study(vectors, published):
    study = classifiers.evaluate(classifiers.read(published), positive="fail", groups=["suite", "complexity"])
    meant = vectors["published"]["significance"]["meant"]

    def answer(start, split="test"):
        (one,) = (one for one in study.tests if one.question.startswith(start) and one.split == split)
        return one.test, one.p

    for question, name in [
        ("Is persona right more often than guessing", "better_than_guessing"),
        ("Does persona lean", "bias_to_one_label"),
        ("Is persona right equally often in all groups of complexity", "simple_against_complex"),
        ("Is persona right equally often in all groups of suite", "suites"),
    ]:
        assert answer(question) == (meant[name]["test"], pytest.approx(meant[name]["p"])), name
    prompts = meant["prompts_on_validation"]
    assert answer("Are all classifiers", "validation") == ("cochran-q", pytest.approx(prompts["p"]))
    for pair in prompts["pairs"]:
        (one,) = (
            one for one in study.tests if one.question == f"Is {pair['a']} or {pair['b']} right more often?"
        )
        assert (one.test, one.p, one.p_holm) == (
            pair["test"],
            pytest.approx(pair["p"]),
            pytest.approx(pair["p_holm"]),
        )
    assert all("no difference" not in one.verdict for one in study.tests)
    assert study.classifiers["persona"].splits["test"].metrics["mcc"].value == pytest.approx(0.11547005)


def test_fairness_of_the_vectors(vectors, tmp_path):
    for case in (case for case in vectors["cases"] if case["kind"] == "fairness"):
        rows = classifiers.read([write(tmp_path / "rows.jsonl", case["rows"])]).rows
        found = measure_fairness(rows, "group", case["positive"])
        close(found.dpd, case["expected"]["dpd"], "dpd")
        close(found.eod, case["expected"]["eod"], "eod")
        for name, group in case["expected"]["groups"].items():
            for rate, value in group.items():
                close(getattr(found.groups[name], rate), value, rate)


def test_robustness_of_the_vectors(vectors, tmp_path):
    (case,) = (case for case in vectors["cases"] if case["kind"] == "robustness")
    rows = classifiers.read([write(tmp_path / "rows.jsonl", case["rows"])]).rows
    found = measure_robustness(rows, ["yes", "no"])
    assert found.robust_items == case["expected"]["robust_items"]
    close(found.robust_accuracy, case["expected"]["robust_accuracy"], "robust accuracy")
    for name, variant in case["expected"]["variants"].items():
        for figure, value in variant.items():
            assert getattr(found.variants[name], figure) == pytest.approx(value), figure


def test_degradation_of_the_vectors(vectors, tmp_path):
    (case,) = (case for case in vectors["cases"] if case["kind"] == "degradation")
    predictions = classifiers.read([write(tmp_path / "rows.jsonl", case["rows"])])
    for split, expected in case["expected"]["mean_of"].items():
        rows = predictions.rows[predictions.rows["split"] == split]
        means = mean_metrics(rows, ["yes", "no"])
        for name, value in expected.items():
            close(means[name], value, name)
    found = classifiers.evaluate(predictions, positive="yes").classifiers["rows"]
    for name in ("overfitting", "degradation"):
        for metric, value in case["expected"][name].items():
            close(getattr(found, name)[metric], value, metric)


def row(item, gold, predicted, **more):
    return {"item": item, "gold": gold, "predicted": predicted, **more}


def study_of(tmp_path, rows, **options):
    return classifiers.evaluate(classifiers.read([write(tmp_path / "rows.jsonl", rows)]), **options)


def test_several_runs_are_averaged_before_a_permutation_test(tmp_path):
    rows = [
        row(item, "1", str(int(item % 2 or name == "a" or run < 1)), classifier=name, run=run)
        for name in "ab"
        for run in range(3)
        for item in range(10)
    ]
    (test,) = (one for one in study_of(tmp_path, rows).tests if "right more often?" in one.question)
    assert test.test == "paired-permutation"
    assert test.effect == pytest.approx(1 / 3)  # on half of the items, b is right in one of three runs
    assert "up to 3 runs" in test.why


@pytest.mark.parametrize(("names", "test"), [("ab", "wilcoxon"), ("abc", "friedman-nemenyi")])
def test_many_data_sets_are_compared_by_ranks(tmp_path, names, test):
    rows = [
        row(item, str(item % 2), str(int((item + place) % (2 + number) > 0)), classifier=name, data_set=place)
        for number, name in enumerate(names)
        for place in range(6)
        for item in range(8)
    ]
    found = study_of(tmp_path, rows, select_by="accuracy").tests
    chosen = [one for one in found if "over data sets" in one.question]
    assert {one.test for one in chosen} == {test}
    assert len(chosen) == {"ab": 1, "abc": 4}[names]


def test_one_class_against_the_rest(tmp_path):
    rows = [row(0, "a", "a"), row(1, "b", "c"), row(2, "c", "a"), row(3, "a", None)]
    found = study_of(tmp_path, rows, positive="a").classifiers["rows"].splits["test"]
    assert found.labels == ["a", "not a"]
    assert (found.matrix, found.unparsed) == ([[1, 0], [1, 1]], 1)


def test_leaks_and_costs(tmp_path):
    rows = [
        row(item, "1", str(item % 2), classifier=name, split=split, seconds=seconds)
        for name, seconds in (("slow", 2), ("fast", 1))
        for split in ("validation", "test")
        for item in (range(4) if split == "test" else range(3, 6))
    ]
    study = study_of(tmp_path, rows)
    assert (study.leaks, study.leaked) == (1, ["3"])
    assert study.classifiers["slow"].costs["seconds"] == {"sum": 8, "per item": 2, "per right answer": 4}
    assert study.classifiers["slow"].dominated_by == ["fast"]
    assert study.classifiers["fast"].dominated_by == []


def test_leaks_with_equal_ids_in_several_data_sets_are_counted_apart(tmp_path):
    rows = [
        row(item, "01"[item], "1", split=split, data_set=data_set)
        for split in ("validation", "test")
        for data_set in ("a", "b", "c")
        for item in range(2)
        if split == "test" or (item == 0 and data_set != "c")
    ]
    study = study_of(tmp_path, rows)
    assert (study.leaks, study.leaked) == (2, ["a/0", "b/0"])


def test_performance_without_any_parsed_output(tmp_path):
    rows = classifiers.read([write(tmp_path / "rows.jsonl", [row(0, "1", None), row(1, "0", None)])]).rows
    found = measure(rows, ["1", "0"])
    assert (found.unparsed, found.metrics["accuracy"].value, found.strict["accuracy"]) == (2, 0, 0)
    assert found.metrics["accuracy"].low is None


def test_any_column_can_name_groups(tmp_path):
    rows = [row(item, "1", "1", where=f"place {item % 2}", right="x") for item in range(4)]
    found = study_of(tmp_path, rows, positive="1", groups=["where", "right"])
    assert {
        name: part.n for name, part in found.classifiers["rows"].splits["test"].groups["where"].items()
    } == {
        "place 0": 2,
        "place 1": 2,
    }


def test_page_tells_what_is_not_reported(tmp_path):
    file = write(tmp_path / "<b>.jsonl", [row(0, "1", "1"), row(1, "0", None)])
    (tmp_path / "about.toml").write_text('model = "llama <3"\n')
    out = tmp_path / "report"
    done = run("evaluate", "classifiers", file, "--about", tmp_path / "about.toml", "--out", out, "-q")
    assert done.returncode == 0, done.stderr
    page = (out / "report.html").read_text()
    assert "llama &lt;3" in page
    assert page.count("not reported") == 5
    assert "1 output could not be parsed" in page
    assert "<b>" not in page
    assert "src=" not in page
    assert r"\textless{}b\textgreater{}" in (out / "tables.tex").read_text()


@pytest.mark.slow
@needs_browser
def test_page_in_a_browser(published, tmp_path):
    out = tmp_path / "report"
    assert (
        run("evaluate", "classifiers", *published, "--positive", "fail", "--out", out, "-q").returncode == 0
    )
    check_page(out / "report.html", tmp_path, 3000)


@pytest.mark.slow
def test_many_rows_give_the_figures_of_scikit_learn(tmp_path):
    from sklearn import metrics

    random = np.random.default_rng(2)
    gold = random.integers(0, 2, 150_000)  # so many that products of their counts exceed 64 bits
    chance = np.clip(0.7 * gold + 0.15 + random.normal(0, 0.3, len(gold)), 0, 1).round(4)
    file = tmp_path / "rows.csv"
    lines = (
        f"{item},{label},{int(p >= 0.5)},{p}"
        for item, (label, p) in enumerate(zip(gold, chance, strict=True))
    )
    file.write_text("\n".join(["item,gold,predicted,probability", *lines]) + "\n")
    found = evaluated(tmp_path, file)["classifiers"]["rows"]["splits"]["test"]
    labels = (chance >= 0.5).astype(int)
    for name, value in {
        "mcc": metrics.matthews_corrcoef(gold, labels),
        "f2": metrics.fbeta_score(gold, labels, beta=2),
        "auc": metrics.roc_auc_score(gold, chance),
        "average_precision": metrics.average_precision_score(gold, chance),
    }.items():
        close(found["metrics"][name]["value"], value, name)
    close(found["calibration"]["positive"]["brier"], metrics.brier_score_loss(gold, chance), "brier")


def written(tmp_path, name, rows):
    file = tmp_path / f"{name}.csv"
    file.write_text("item,gold,predicted,split\n" + "".join(f"{','.join(row)}\n" for row in rows))
    return file


def rows_of(answers, split="test"):
    """Return a row for each text in `answers`; "pf" means the gold label pass and the prediction fail."""
    names = {"p": "pass", "f": "fail", "-": "", "s": "skip"}
    return [(f"{split}{i}", names[a], names[b], split) for i, (a, b) in enumerate(answers)]


def test_all_outputs_of_a_split_may_be_unparsed(tmp_path):
    answers = ["pp", "fp", "ff", "pf"] * 5
    file = written(tmp_path, "a", rows_of(answers) + rows_of(["p-", "f-"] * 5, "validation"))
    found = classifiers.evaluate(classifiers.read([file]), positive="fail")
    assert found.classifiers["a"].splits["validation"].unparsed == 10
    assert not [answer for answer in found.tests if "worse on test data" in answer.question]


def test_a_label_that_no_item_has_is_unparsed_and_named(tmp_path):
    file = written(tmp_path, "a", rows_of(["pp", "ff", "fs", "ps"] * 5))
    found = classifiers.evaluate(classifiers.read([file]), positive="fail")
    assert found.labels == ["fail", "pass"]
    test = found.classifiers["a"].splits["test"]
    assert (test.unparsed, test.invented) == (10, 10)
    assert write_conclusions(found)[0] == (
        "10 of 20 predicted labels are no item's true class (skip: 10); the true classes are fail, pass. "
        "Such a label counts as unparsed."
    )


def test_missing_items_and_missing_validation_rows_are_named(tmp_path):
    files = [
        written(tmp_path, "a", rows_of(["pp", "ff"] * 10)),
        written(tmp_path, "b", rows_of(["pp", "fp"] * 6)),
    ]
    found = classifiers.evaluate(classifiers.read(files), positive="fail")
    said = write_conclusions(found)
    assert said[0] == "b has only 12 of the 20 test items."
    assert "No classifier is selected, because there are no validation rows." in said


def test_the_selecting_metric_of_two_classifiers_is_compared_by_an_interval(tmp_path):
    files = [
        written(tmp_path, "a", rows_of(["pp", "ff", "ff", "pp", "pf"] * 20)),
        written(tmp_path, "b", rows_of(["pp", "fp", "ff", "pf", "pf"] * 20)),
    ]
    found = classifiers.evaluate(classifiers.read(files), positive="fail")
    (answer,) = (answer for answer in found.tests if answer.question == "Has a or b the better mcc?")
    values = [found.classifiers[name].splits["test"].strict["mcc"] for name in "ab"]
    assert answer.effect == pytest.approx(values[0] - values[1])
    assert answer.low < answer.effect < answer.high
    assert answer.low > 0
    assert answer.p is None


@pytest.mark.parametrize(
    ("header", "words", "message"),
    [
        ("item,gold,probability", [], "no column predicted; it has item, gold, probability. --threshold"),
        ("item,gold,predicted,probability", ["--threshold", ".5"], "--threshold has no effect"),
    ],
)
def test_labels_and_threshold_exclude_each_other(tmp_path, header, words, message):
    file = tmp_path / "a.csv"
    row = {"item": "1", "gold": "p", "predicted": "p", "probability": "0.3"}
    file.write_text(f"{header}\n" + ",".join(row[name] for name in header.split(",")) + "\n")
    done = run("evaluate", "classifiers", file, "--positive", "f", *words, "--out", tmp_path / "out")
    assert done.returncode == 2
    assert message in done.stderr
