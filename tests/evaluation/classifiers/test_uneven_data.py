"""Studies of classifiers with several runs, folds and data sets, few common items, and odd columns."""

import json

import numpy as np
import pytest

from simllm import InputError
from simllm.evaluation import classifiers
from simllm.evaluation.classifiers.report import write_conclusions
from tests.command import run


def study(tmp_path, rows, **options):
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return classifiers.evaluate(classifiers.read([file]), **{"positive": "y", **options})


def row(item, gold, predicted, **more):
    return {"item": str(item), "gold": gold, "predicted": predicted, "classifier": "a", **more}


PAIR = [row(0, "y", "y"), row(1, "n", "n")]


def answer(found, start):
    (one,) = (one for one in found.tests if one.question.startswith(start))
    return one


def test_runs_are_averaged_before_the_tests(tmp_path):
    labels = ["y", "n"] * 10
    other = {"y": "n", "n": "y"}
    rows = [
        row(i, gold, other[gold] if k == 0 else gold, run=str(k))
        for k in range(3)
        for i, gold in enumerate(labels)
    ]
    found = study(tmp_path, rows)
    one = answer(found, "Is a right more often than guessing")
    assert (one.test, one.statistic, one.effect) == ("binomial", 13, pytest.approx(2 / 3 - 0.5))
    assert answer(study(tmp_path, rows[::-1]), "Is a right more often than guessing").effect == one.effect
    once = study(tmp_path, [row(i, gold, gold if i % 3 else other[gold]) for i, gold in enumerate(labels)])
    widths = [
        part.classifiers["a"].splits["test"].metrics["mcc"].high
        - part.classifiers["a"].splits["test"].metrics["mcc"].low
        for part in (found, once)
    ]
    assert widths[0] > 0.7 * widths[1]  # three runs of the same items are not three times as many items


def test_equal_runs_are_no_evidence_against_chance(tmp_path):
    rows = [row(i, gold, gold, run=str(k)) for k in range(2) for i, gold in enumerate("n" * 8 + "y" * 2)]
    once, twice = (
        answer(study(tmp_path, part), "Is a right more often than always") for part in (rows[:10], rows)
    )
    assert once.p == twice.p == pytest.approx(0.2282, abs=1e-4)


def test_runs_are_no_further_items_in_the_comparison_with_a_variant(tmp_path):
    rows = [
        row(i, "yn"[i % 2], "yn"[(i + (i < 4 and variant != "")) % 2], variant=variant, run=str(k))
        for k in range(5)
        for i in range(20)
        for variant in ("", "typo")
    ]
    found = study(tmp_path, rows).classifiers["a"].robustness
    one = found.variants["typo"]
    assert (one.n, one.lost, one.recovered, one.asr) == (20, 4, 0, 0.2)
    assert (one.test, one.p) == ("paired-permutation", pytest.approx(0.125, abs=0.01))
    assert (found.robust_items, found.robust_accuracy) == (20, 0.8)


def test_unparsed_outputs_are_wrong_over_data_sets(tmp_path):
    rows = []
    for data_set in range(8):
        for i in range(20):
            gold = "yn"[i % 2]
            rows.append(row(i, gold, gold if i < 6 else None, data_set=f"d{data_set}"))
            wrong = "yn"[i % 2 == 0]
            rows.append(row(i, gold, gold if i < 16 else wrong, data_set=f"d{data_set}", classifier="b"))
    one = answer(study(tmp_path, rows, select_by="accuracy"), "Is a or b better over data sets")
    assert (one.test, one.effect) == ("wilcoxon", pytest.approx(-0.5))


def test_data_sets_without_common_items_do_not_count(tmp_path):
    rows = [row(i, "yn"[i % 2], "y", data_set=f"a{i // 4}") for i in range(32)]
    rows += [row(i, "yn"[i % 2], "y", data_set=f"b{i // 4}", classifier="b") for i in range(32)]
    rows += [row(i, "yn"[i % 2], "y", data_set=f"c{i // 4}", classifier="c") for i in range(32)]
    found = study(tmp_path, rows)
    assert not [one for one in found.tests if len(one.classifiers) > 1 and one.p is not None]
    assert any("have 0 test items in common" in sentence for sentence in write_conclusions(found))


def test_the_smallest_brier_score_is_the_best(tmp_path):
    rows = []
    for name, chance in (("good", 0.9), ("bad", 0.4)):
        for i in range(30):
            gold, others = "xyz"[i % 3], [c for c in "xyz" if c != "xyz"[i % 3]]
            chances = {gold: chance, others[0]: 1 - chance, others[1]: 0.0}
            predicted = max(chances, key=chances.get)
            rows.append(
                row(i, gold, predicted, classifier=name, split="validation", probabilities=chances, seconds=1)
            )
    found = study(tmp_path, rows, positive=None, select_by="brier")
    assert found.selected == "good"
    assert found.classifiers["good"].dominated_by == []
    assert found.classifiers["bad"].dominated_by == ["good"]


def test_confidence_in_another_class_is_no_probability_of_the_positive_one(tmp_path):
    rows = [row(i, "ync"[i % 3], "nyc"[i // 3 % 3], confidence=0.34) for i in range(90)]
    found = study(tmp_path, rows).classifiers["a"].splits["test"]
    assert found.metrics["auc"].value is None
    assert found.calibration == {}


def test_differences_without_any_error_have_no_p_value(tmp_path):
    rows = []
    for i in range(4):
        gold = "yn"[i % 2]
        rows.append(row(i, gold, gold, score=float(gold == "y")))
        rows.append(row(i, gold, "y", score=0.5, classifier="b"))
    one = answer(study(tmp_path, rows), "Does a or b order the items better")
    assert one.p is None
    assert one.verdict == "The AUC of a is larger by 0.500."


def test_words_follow_the_sign(tmp_path):
    found = study(tmp_path, [row(i, "yn"[i % 2], "ny"[i % 2]) for i in range(20)])
    assert "a is right less often than guessing (0.000 against 0.500). This is significant" in (
        answer(found, "Is a right more often than guessing").verdict
    )
    even = study(tmp_path, [row(i, "yn"[i % 2], "yn"[i // 2 % 2]) for i in range(20)])
    assert answer(even, "Is a right more often than guessing").verdict == (
        "a is right as often as guessing (0.500 against 0.500)."
    )


def test_the_interval_of_a_degradation_holds_the_difference(tmp_path):
    random = np.random.default_rng(0)
    rows = []
    for fold, size in enumerate((60, 8, 8)):
        for i in range(size):
            gold, wrong = ("y", "n") if i % 2 else ("n", "y")
            rows.append(row(f"{fold}-{i}", gold, gold if random.random() < 0.7 else wrong,
                            fold=str(fold), split="validation"))  # fmt: skip
    rows += [row(f"t{i}", "yn"[i % 2], "yn"[i % 2] if i % 5 else "ny"[i % 2]) for i in range(60)]
    one = answer(study(tmp_path, rows), "Is a worse on test data")
    assert one.low <= one.effect <= one.high


def test_scores_of_two_folds_have_no_common_order(tmp_path):
    rows = []
    for fold in range(2):
        for i in range(10):
            gold = "yn"[i % 2]
            score = 10 * fold + (5 if gold == "y" else 0) + i / 10
            rows.append(row(f"{fold}-{i}", gold, "y", score=score, fold=str(fold)))
    assert study(tmp_path, rows).classifiers["a"].splits["test"].metrics["auc"].value == 1.0


@pytest.mark.parametrize("folds_of_both", [True, False])
def test_the_test_of_two_aucs_compares_within_folds(tmp_path, folds_of_both):
    random = np.random.default_rng(0)
    rows = []
    for i in range(80):
        gold, fold = "yn"[i % 2], str(i % 8 // 2)
        shift = 10 * int(fold)
        rows.append(row(i, gold, "y", fold=fold, score=shift + (gold == "y") + i / 100))
        score = (gold == "y") + random.normal(0, 0.6) + shift * folds_of_both
        rows.append(row(i, gold, "y", fold=fold if folds_of_both else "", score=score, classifier="b"))
    found = study(tmp_path, rows)
    a, b = (found.classifiers[name].splits["test"].metrics["auc"].value for name in "ab")
    one = answer(found, "Does a or b order the items better")
    assert a == 1
    assert one.p < 0.01
    assert one.effect == pytest.approx(a - b, abs=1e-9 if folds_of_both else 0.1)
    assert "80 common items, which are compared within folds" in one.why


def test_the_auc_on_a_variant_is_compared_within_folds(tmp_path):
    rows = []
    for i in range(40):
        gold, fold = "yn"[i % 2], i % 4 // 2
        for k in range(3):
            common = {"fold": str(fold), "run": str(k)}
            right, mixed = 10 * fold + (gold == "y") + i / 100, 10 * fold + i % 7
            rows.append(row(i, gold, "y", score=right, **common))
            rows.append(row(i, gold, "y", score=mixed, variant="typo", **common))
    found = study(tmp_path, rows).classifiers["a"]
    before = found.splits["test"].metrics["auc"].value
    after = found.splits["test"].variants["typo"].metrics["auc"].value
    once = study(tmp_path, [one for one in rows if one["run"] == "0"]).classifiers["a"].robustness
    assert found.robustness.variants["typo"].auc["difference"] == pytest.approx(before - after)
    assert found.robustness.variants["typo"].auc == pytest.approx(once.variants["typo"].auc)


def test_a_fold_may_lack_a_class(tmp_path):
    rows = []
    for fold, labels in enumerate(("xyz", "xy")):
        for i in range(30):
            gold = labels[i % len(labels)]
            chances = dict.fromkeys("xyz", 0.2) | {gold: 0.6}
            rows.append(row(f"{fold}-{i}", gold, gold, probabilities=chances, fold=str(fold)))
            rows.append(row(f"v{fold}-{i}", gold, gold, probabilities=chances, fold=str(fold), split="train"))
    found = study(tmp_path, rows, positive=None)
    assert found.classifiers["a"].overfitting["accuracy"] == 0


def test_missing_groups_and_partial_costs_are_left_out(tmp_path):
    rows = [
        row(i, "yn"[i % 2], "yn"[i % 2] if i < 15 else "y", suite="s" if i % 3 else None) for i in range(20)
    ]
    rows += [row(i, "yn"[i % 2], "y", classifier="b", seconds=2) for i in range(20)]
    for one in rows[:2]:
        one |= {"seconds": 1, "cost": 5}
    found = study(tmp_path, rows, groups=["suite"])
    assert list(found.classifiers["a"].fairness["suite"].groups) == ["s"]
    assert found.classifiers["a"].costs["cost"]["per right answer"] == 5
    assert found.classifiers["b"].dominated_by == []


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ([*PAIR, row(2, "y", "y", probabilities={"y": 0.5, "no": 0.5})], {}, "no probability of the class n"),
        ([row(0, "y", "y", score=1), row(1, "n", "n", probability=0.1)], {}, "cannot be ranked together"),
        ([*PAIR, row(2, "y", "y", seconds=1)], {"groups": ["seconds"]}, "no column seconds for groups"),
        ([row(0, "y", "y", self="a"), row(1, "n", "n")], {"groups": ["self"]}, None),
        ([row(i, "yn"[i % 2], "y", id=str(i)) for i in range(300)], {"groups": ["id"]}, "id has 300 groups"),
        ([row(0, "y", "y"), row(1, "n", "n")], {"matrices": {"x": [10**20, 1, 1, 1]}}, "the matrix x"),
    ],
)  # fmt: skip
def test_odd_columns(tmp_path, rows, options, message):
    if message is None:
        study(tmp_path, rows, **options)
        return
    with pytest.raises(InputError, match=message):
        study(tmp_path, rows, **options)


@pytest.mark.parametrize(
    ("name", "text", "words", "message"),
    [
        ("a.csv", 'item;gold;predicted\n1;y;y\n2;"n;n\n', [], "row 2: not CSV (a quotation mark is"),
        ("a.csv", '"item";"gold";"predicted"\n"1";"y";"y"\n"2";"n";"n"\n', [], None),
        ("a.csv", "suite, item, gold, predicted\ns, 1, y, y\ns, 2, n , n\n", [], None),
        ("a.csv", "id;label;answer\n1;y;y\n2;n;n\n",
         ["--columns", "item=id,gold=label,predicted=answer"], None),
        ("a.csv", "item,gold,label,predicted\n1,y,y,y\n", ["--columns", "gold=label"], "would replace"),
        ("a.csv", "item,gold,predicted\n1,y,y\n2,n,n\n", ["--folds", "3"], "--folds goes with --ratings"),
        ("a.csv", "item,gold,predicted\n1,y,y\n2,n,n\n", ["--matrix", "x=1,1,1,1"] * 2,
         "x stands twice"),
        ("a.csv", "item,gold,predicted,probabilities\n1,y,y,1\n", [], "columns such as p:bug"),
    ],
)  # fmt: skip
def test_odd_files_and_options(tmp_path, name, text, words, message):
    (tmp_path / name).write_text(text)
    done = run(
        "evaluate", "classifiers", tmp_path / name, "--positive", "y", *words, "--out", tmp_path / "out"
    )
    assert done.returncode == (2 if message else 0), done.stderr
    if message:
        assert message in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_two_files_of_one_name_are_refused(tmp_path):
    for folder in "de":
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "p.csv").write_text(f"item,gold,predicted\n{folder},y,y\n{folder}2,n,n\n")
    files = [tmp_path / "d" / "p.csv", tmp_path / "e" / "p.csv"]
    done = run("evaluate", "classifiers", *files, "--positive", "y", "--out", tmp_path / "out")
    assert (done.returncode, "has the same name" in done.stderr) == (2, True)


def test_facts_about_a_study_may_be_lists_and_dates(tmp_path):
    (tmp_path / "a.csv").write_text("item,gold,predicted\n1,y,y\n2,n,n\n")
    (tmp_path / "about.toml").write_text('model = 2024-01-01\nmetrics = ["mcc", "f1"]\n')
    words = ["--positive", "y", "--about", tmp_path / "about.toml", "--out", tmp_path / "out"]
    done = run("evaluate", "classifiers", tmp_path / "a.csv", *words)
    assert done.returncode == 0, done.stderr
    assert "mcc, f1" in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"model = " + b"[" * 2000 + b"]" * 2000, "about.toml: TOML that is nested too deeply"),
        (b"model = " + b"7" * 5000, "about.toml: not TOML (Exceeds the limit"),
        (b"model = caf\xe9", "about.toml: not UTF-8"),
        (b"model", "about.toml: not TOML ("),
    ],
    ids=["deep", "digits", "encoding", "syntax"],
)
def test_odd_facts_about_a_study_are_refused_in_one_line(tmp_path, content, message):
    (tmp_path / "a.csv").write_text("item,gold,predicted\n1,y,y\n2,n,n\n")
    (tmp_path / "about.toml").write_bytes(content)
    words = ["--positive", "y", "--about", tmp_path / "about.toml", "--out", tmp_path / "out"]
    done = run("evaluate", "classifiers", tmp_path / "a.csv", *words)
    assert (done.returncode, done.stderr.count("\n"), message in done.stderr) == (2, 1, True), done.stderr


def test_a_missing_data_set_is_named_even_if_its_ids_occur_in_another(tmp_path):
    rows = [
        row(number, "yn"[number % 2], "y", classifier=name, data_set=data_set)
        for name in "ab"
        for data_set in "xy"[: 1 + (name == "a")]
        for number in range(4)
    ]
    assert write_conclusions(study(tmp_path, rows))[0] == "b has only 4 of the 8 test items."
