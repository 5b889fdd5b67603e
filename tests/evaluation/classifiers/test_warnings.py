"""What makes the figures of a study mean less stands on standard error, in the JSON and on the page."""

import json
import re

import numpy as np
import pytest

from simllm import InputError
from simllm.evaluation import classifiers
from simllm.evaluation.classifiers.labels import label_key
from simllm.evaluation.classifiers.report import write_conclusions
from tests.command import run

N = 40


def table(file, columns, rows):
    file.write_text("\n".join([columns, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return file


def judge(folder, *words):
    """Run the command, and return its table as a list of dicts, its warnings, and its JSON."""
    done = run("evaluate", "classifiers", *words, "--out", "report", "-f", "json", cwd=folder)
    assert done.returncode == 0, done.stderr
    report = json.loads((folder / "report" / "classifiers.json").read_text())
    said = [line.removeprefix("simllm: warning: ") for line in done.stderr.splitlines()]
    assert said == report["warnings"]
    page = (folder / "report" / "report.html").read_text()
    for sentence in said:
        start = sentence.split("'")[0].replace("<", "&lt;")
        assert start in page
    return json.loads(done.stdout)["rows"], said, report


def labelled(folder, spell, name="a.csv"):
    """Write predictions that are right but for their spelling; `spell` maps each class to a label."""
    golds = list(spell)
    rows = [(i, golds[i % len(golds)], spell[golds[i % len(golds)]]) for i in range(N)]
    return table(folder / name, "item,gold,predicted", rows)


@pytest.mark.parametrize(
    ("spell", "positive", "named"),
    [
        ({"0": "0.0", "1": "1.0"}, [], "0.0 as 0 (20), 1.0 as 1 (20)"),
        ({"0.0": "0", "1.0": "1"}, [], "0 as 0.0 (20), 1 as 1.0 (20)"),
        (
            {"pass": "PASS", "fail": "**Fail**."},
            ["--positive", "Fail"],
            "PASS as pass (20), **Fail**. as fail",
        ),
        (
            {"True": "true", "False": "false"},
            ["--positive", "true"],
            "true as True (20), false as False (20)",
        ),
        (
            {"c": "`C`", "c++": "C++", "c#": "(C#)", "-1": "-1.0"},
            [],
            "`C` as c (10), C++ as c++ (10), (C#) as c#",
        ),
    ],
)
def test_labels_that_differ_only_in_spelling_are_one(tmp_path, spell, positive, named):
    (row,), said, report = judge(tmp_path, labelled(tmp_path, spell), *positive)
    assert (row["accuracy"], row["unparsed"], row["invented"]) == (1, 0, 0)
    assert len(said) == 1
    assert named in said[0]
    assert sum(each["n"] for each in report["spelling"]["respelled"].values()) == N


def test_classes_of_one_file_that_differ_only_in_case_stay_apart(tmp_path):
    rows = [(i, "aAb"[i % 3], "aAb"[i % 3] if i > 3 else "A.") for i in range(N)]
    (row,), said, report = judge(tmp_path, table(tmp_path / "a.csv", "item,gold,predicted", rows))
    assert (row["accuracy"], row["invented"]) == (0.9, 4)
    assert report["spelling"]["apart"] == [["a", "A"]]
    assert said[0].startswith("The true classes a, A differ only in spelling. They stay two classes")


def test_classes_that_two_files_spell_otherwise_are_one(tmp_path):
    first = labelled(tmp_path, {"yes": "yes", "no": "no"})
    second = labelled(tmp_path, {"Yes": "yes", "NO": "no"}, "b.csv")
    rows, said, report = judge(tmp_path, first, second, "--positive", "YES")
    assert [row["accuracy"] for row in rows] == [1, 1]
    assert report["labels"] == ["yes", "no"]
    assert said == [
        "Labels that differ only in case, outer punctuation or form of a number are one: Yes as yes (20), "
        "NO as no (20).",
        "a, b give the same labels in all 40 rows.",
    ]


def test_keys_of_labels():
    assert label_key("-1") != label_key("1") == label_key("1.0") == label_key("+1.00") == label_key('"1."')
    assert label_key("C") != label_key("C++")
    assert label_key("+") != label_key("-")
    assert label_key("?!") != label_key("...")
    assert label_key("12345678901234567890") != label_key("12345678901234567891")


def test_columns_of_probabilities_are_spelled_as_the_classes(tmp_path):
    rows = [(i, "YN"[i % 2], "yn"[i % 2], 0.9 - i % 2 * 0.8, 0.1 + i % 2 * 0.8) for i in range(N)]
    file = table(tmp_path / "a.csv", "item,gold,predicted,p:y,p:n", rows)
    (row,), _, _ = judge(tmp_path, file, "--positive", "y")
    assert (row["accuracy"], row["auc"]) == (1, 1)


def test_words_for_missing_values_are_unparsed_unless_they_are_a_class(tmp_path):
    words = ["NaN", "null", "n/a", "None"]
    rows = [(i, "ab"[i % 2], words[i] if i < 4 else "ab"[i % 2]) for i in range(N)]
    (row,), said, _ = judge(
        tmp_path, table(tmp_path / "a.csv", "item,gold,predicted", rows), "--positive", "a"
    )
    assert (row["unparsed"], row["invented"]) == (4, 0)
    assert said == ["Words for a missing value count as unparsed outputs (NaN: 1, null: 1, n/a: 1, None: 1)."]
    (row,), said, _ = judge(
        tmp_path, labelled(tmp_path, {"bug": "Bug", "none": "none"}, "b.csv"), "--positive", "bug"
    )
    assert row["unparsed"] == 0
    assert said[1] == "The true class none may stand for missing values; it is taken as a class."
    with pytest.raises(InputError, match="row 1: the gold is a missing value"):
        classifiers.read([table(tmp_path / "c.csv", "item,gold,predicted", [(1, "NaN", "a")])])


def test_a_few_parsed_outputs_are_named_beside_their_accuracy(tmp_path):
    rows = [(i, "ab"[i % 2], "ab"[i % 2] if i < 12 else "?" if i < 20 else "") for i in range(N)]
    (row,), said, report = judge(
        tmp_path, table(tmp_path / "m.csv", "item,gold,predicted", rows), "--positive", "a"
    )
    assert (row["accuracy"], row["rows"], row["unparsed"], row["invented"]) == (1, 40, 28, 8)
    assert said == [
        "8 of 20 predicted labels are no item's true class (?: 8); the true classes are a, b. Such a label "
        "counts as unparsed.",
        "m (test): 28 of 40 outputs are unparsed, and the figures are over 12 of them; if they count as "
        "wrong, the accuracy is .300.",
        "m (test) is right in .300 of the rows; always answering a would be right in .500.",
    ]
    assert report["invented"] == {"?": 8}


def test_ids_in_two_forms_have_nothing_in_common(tmp_path):
    files = [
        table(
            tmp_path / f"{name}.csv",
            "item,gold,predicted",
            [(f"{i}{end}", "ab"[i % 2], "a") for i in range(12)],
        )
        for name, end in (("m", ""), ("n", ".0"))
    ]
    _, said, report = judge(tmp_path, *files, "--positive", "a")
    assert said[0] == (
        "All classifiers have 0 test items in common (m: 0, 1, 2, 3, 4 …; n: 0.0, 1.0, 2.0, 3.0, 4.0 …): "
        "nothing compares them. Ids that are written in two ways are two items: 0 and 0.0, 1 and 1.0, "
        "10 and 10.0, 11 and 11.0, 2 and 2.0 …."
    )
    assert not [one for one in report["tests"] if len(one["classifiers"]) > 1]


def test_leaks_are_named_also_if_ids_are_written_in_two_ways(tmp_path):
    rows = [(i, "ab"[i % 2], "ab"[i % 2], split) for split in ("train", "test") for i in range(10)]
    rows += [("10.0", "a", "a", "train"), ("10", "a", "a", "test")]
    _, said, _ = judge(
        tmp_path, table(tmp_path / "m.csv", "item,gold,predicted,split", rows), "--positive", "a"
    )
    assert said == [
        "10 items are in two splits of the same fold (0, 1, 2, 3, 4 …): the results are too good.",
        "train and test data may share items whose ids are written in two ways: 10.0 and 10.",
    ]


@pytest.mark.parametrize("column", ["probability", "confidence", "score"])
def test_scores_of_the_other_class_are_recognized(tmp_path, column):
    random = np.random.default_rng(3)
    rows = []
    for i in range(N):
        right = random.random() < 0.9
        label = "ab"[(i + (not right)) % 2]
        of_a = 0.2 + 0.1 * random.random() if label == "a" else 0.7 + 0.1 * random.random()
        value = of_a if column != "confidence" else 1 - of_a if label == "b" else of_a
        rows.append((i, "ab"[i % 2], label, value if column != "score" else 10 * value))
    (row,), said, _ = judge(
        tmp_path, table(tmp_path / "m.csv", f"item,gold,predicted,{column}", rows), "--positive", "a"
    )
    assert row["accuracy"] > 0.85
    assert row["auc"] < 0.2
    assert re.fullmatch(
        r"m \(test\): the scores rank the items the wrong way round \(AUC \.\d+\), although the labels do "
        r"not \(MCC \.\d+\)\. Are they scores of the other class\?",
        said[0],
    )
    assert [("not the more probable one" in one) for one in said[1:]] == [True] * (column != "score")


def test_probabilities_of_many_classes_that_contradict_the_labels(tmp_path):
    rows = [(i, "abc"[i % 3], "abc"[i % 3], *np.roll([0.1, 0.7, 0.2], i % 3)) for i in range(N)]
    file = table(tmp_path / "m.csv", "item,gold,predicted,p:a,p:b,p:c", rows)
    _, said, _ = judge(tmp_path, file)
    assert said == [
        "m (test): in 40 of 40 rows the predicted label is not the more probable one. Is the number that of "
        "another class?"
    ]


def test_a_perfect_classifier_has_no_interval_of_width_0(tmp_path):
    rows = [(i, "ab"[i % 2], "ab"[i % 2], 0.9 - 0.8 * (i % 2)) for i in range(N)]
    (row,), said, report = judge(
        tmp_path, table(tmp_path / "m.csv", "item,gold,predicted,probability", rows), "--positive", "a"
    )
    assert (row["mcc"], row["auc"], said) == (1, 1, [])
    found = report["classifiers"]["m"]["splits"]["test"]["metrics"]
    assert (found["auc"]["low"], found["auc"]["high"]) == (pytest.approx(0.89867, abs=1e-5), 1)
    for one in found.values():
        assert one["low"] is None or one["low"] < one["high"]


def test_sentences_have_the_interval_of_their_own_direction(tmp_path):
    random = np.random.default_rng(8)
    files = []
    for name, share in (("a", 0.55), ("b", 0.9), ("c", 0.7), ("d", 0.6)):
        right = random.random(80) < share
        rows = [(i, "yn"[i % 2], "yn"[(i + (not ok)) % 2]) for i, ok in enumerate(right)]
        files.append(table(tmp_path / f"{name}.csv", "item,gold,predicted", rows))
    study = classifiers.evaluate(classifiers.read(files), positive="y")
    pattern = re.compile(r"the mcc of (\w) is (\S+) above that of (\w) .*95% interval (\S+) to (\S+)\)")
    found = [match.groups() for one in write_conclusions(study) if (match := pattern.search(one))]
    assert len(found) == 6
    assert ("b", "a") in [(better, worse) for better, _, worse, *_ in found]
    for _, value, _, low, high in found:
        assert float(low) < float(value) < float(high)
    (one,) = (one for one in study.tests if one.question == "Has a or b the better mcc?")
    assert one.low < one.effect < one.high < 0


def test_equal_classifiers_have_the_same_metric(tmp_path):
    files = [labelled(tmp_path, {"y": "y", "n": "n"}, f"{name}.csv") for name in "ab"]
    study = classifiers.evaluate(classifiers.read(files), positive="y")
    (one,) = [one for one in study.tests if one.question == "Has a or b the better mcc?"]
    assert (one.verdict, one.low) == ("On common items, a and b have the same mcc.", None)


def test_a_worse_brier_score_is_called_higher(tmp_path):
    rows = []
    for split, chance in (("validation", 0.9), ("test", 0.5)):
        for i in range(12):
            rows.append(
                (f"{split}{i}", "abc"[i % 3], "abc"[i % 3], split, *np.roll([chance, 0, 1 - chance], i % 3))
            )
    file = table(tmp_path / "m.csv", "item,gold,predicted,split,p:a,p:b,p:c", rows)
    study = classifiers.evaluate(classifiers.read([file]), select_by="brier")
    (one,) = [one for one in study.tests if "worse on test data" in one.question]
    assert one.verdict == "On test data, brier of m is 0.480 higher than on validation data."
    assert one.effect == pytest.approx(0.48)


def test_constant_single_class_and_tiny_studies(tmp_path):
    rows = [(i, "ab"[i % 4 == 0], "a", 0.3) for i in range(N)]
    file = table(tmp_path / "m.csv", "item,gold,predicted,probability", rows)
    assert judge(tmp_path, file, "--positive", "b")[1] == [
        "m (test): it always answers a; 0 / 0 is shown as 0 for mcc, precision.",
        "m (test) is right in .750 of the rows; always answering a would be right in .750.",
        "m (test) has the same score in all rows; it orders nothing, and the AUC is .5.",
    ]
    rows = [(i, "a", "ab"[i % 4 == 0]) for i in range(4)]
    _, said, report = judge(
        tmp_path, table(tmp_path / "n.csv", "item,gold,predicted", rows), "--positive", "b"
    )
    assert said == [
        "Fewer than 10 rows say little (n test: 4).",
        "n (test): all its items are a; 0 / 0 is shown as 0 for mcc, recall.",
    ]
    assert not [one for one in report["tests"] if "more often than" in one["question"]]
    assert report["classifiers"]["n"]["splits"]["test"]["metrics"]["f1"]["low"] is None


def test_groups_and_calibration_of_few_rows(tmp_path):
    rows = [
        (i, "ab"[i % 2], "ab"[i % 2], 0.2 + 0.5 * (i % 2) if i < 8 else "null", "xy"[i < 2]) for i in range(N)
    ]
    file = table(tmp_path / "m.csv", "item,gold,predicted,probability,lang", rows)
    _, said, _ = judge(tmp_path, file, "--positive", "b", "--groups", "lang")
    assert said[0] == (
        "Groups of lang with fewer than 10 rows (y: 2): their rates, and the differences DPD and EOD between "
        "the extremes, say little."
    )
    assert (
        said[1]
        == "m (test) has a probability or score in 8 of 40 parsed rows; AUC and calibration are over these."
    )
    assert said[2].startswith(
        "m (test): 8 rows with a probability are few for the calibration; by chance alone"
    )


def test_training_data_ties_and_partial_costs(tmp_path):
    spell = {"a": "a", "b": "b"}
    for name in "mn":
        rows = [(i, *"ab"[i % 2] * 2, "validation", 1 if i < 5 else "") for i in range(N)]
        table(tmp_path / f"{name}.csv", "item,gold,predicted,split,seconds", rows)
    table(tmp_path / "t.csv", "item,gold,predicted,split", [(f"t{i}", *spell, "train") for i in range(N)])
    files = [tmp_path / f"{name}.csv" for name in "mnt"]
    _, said, _ = judge(tmp_path, *files, "--positive", "a")
    assert "m, n have the same mcc on validation data; m is only the first of them." in said
    assert "m, n: the figures are of validation data; others are of other data." in said
    assert "t: the figures are of training data, on which any classifier looks good." in said
    assert "n reports costs of some of its 40 rows only (seconds: 5)." in said


def test_a_true_class_with_probability_0_is_named(tmp_path):
    rows = [(i, "ab"[i % 2], "ab"[i % 2], 1 if i == 1 else 0.9 - 0.8 * (i % 2)) for i in range(N)]
    file = table(tmp_path / "m.csv", "item,gold,predicted,probability", rows)
    assert judge(tmp_path, file, "--positive", "a")[1] == [
        "m (test) gives the true class the probability 0 in 1 row; the log loss takes 2.2e-16 for it, as "
        "scikit-learn does."
    ]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("9" * 400, "row 1: expected a number under seconds, not '9999"),
        ("1e200", "row 1: expected a number under seconds, not '1e200'"),
        ('"0,5"', "not '0,5'; write a decimal point, not a comma"),
        ("inf", "row 1: expected a number under seconds, not 'inf'"),
        ("-3", "row 1: negative seconds"),
    ],
)
def test_numbers_without_meaning_are_refused(tmp_path, value, message):
    table(tmp_path / "m.csv", "item,gold,predicted,seconds", [(1, "a", "a", value), (2, "b", "b", 1)])
    done = run("evaluate", "classifiers", "m.csv", "--positive", "a", "--out", "o", cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert message in done.stderr
    assert len(done.stderr) < 200


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--bins", "9" * 30], "bins: expected from 1 to 1,000"),
        (["--alpha=--"], "argument --alpha: expected a value, not --"),
        (["--alpha", "nan"], "alpha nan: expected a number between 0 and 1"),
        (["--threshold", "nan"], "--threshold nan: expected a number"),
        (["--threshold", "inf"], "--threshold inf: expected a number"),
    ],
)
def test_options_without_meaning_are_refused(tmp_path, words, message):
    labelled(tmp_path, {"a": "a", "b": "b"})
    done = run("evaluate", "classifiers", "a.csv", "--positive", "a", *words, "--out", "o", cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert message in done.stderr
