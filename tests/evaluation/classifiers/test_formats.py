"""Predictions are read as other programs write them: pandas, the code of the thesis, `simllm generate`."""

import json

import pandas as pd
import pytest

from simllm.cli.main import main
from simllm.errors import InputError
from simllm.evaluation import classifiers

TEST = "def test_a(self):\n    self.assertEqual(\"a b\", 'c')\n"


def write_thesis_file(file, rows):
    """Write a file as the thesis's code does: `to_csv` with spaces, its index, and texts of several lines."""
    table = pd.DataFrame(rows, columns=["item", "label", "pred", "confidence"]).set_index("item")
    table.index.name = None
    message = [f'Explanation: it "may" fail,\n because.\nLabel: {one}' for one in table["pred"]]
    table = table.assign(suite="ast", name="test_a", n=range(len(table)), test=TEST, message=message)
    columns = ["suite", "name", "label", "n", "test", "message", "pred", "confidence"]
    table[columns].to_csv(file, sep=" ", index=True, header=True, mode="w")
    return file


def rows_of(right, n=12, unparsed=()):
    rows = []
    for i in range(n):
        gold = ("pass", "fail")[i % 2]
        pred = gold if i < right else ("fail", "pass")[i % 2]
        rows.append((i, gold, None, None) if i in unparsed else (i, gold, pred, 0.5 + i / 50))
    return rows


def test_files_of_the_thesis_are_read_as_they_are(tmp_path):
    files = [
        write_thesis_file(tmp_path / f"results_{name}.csv", rows)
        for name, rows in {
            "val_persona": rows_of(8),
            "val_zeroshot": rows_of(6, unparsed=[0, 3, 11]),
            "test_persona": rows_of(10),
            "test_persona_charswap": rows_of(5),
            "val_few_shot": rows_of(7),
        }.items()
    ]
    study = classifiers.evaluate(classifiers.read(files), positive="fail")
    sizes = {name: {s: part.n for s, part in one.splits.items()} for name, one in study.classifiers.items()}
    assert sizes == {
        "persona": {"validation": 12, "test": 12},
        "zeroshot": {"validation": 12},
        "few_shot": {"validation": 12},  # few is no classifier, and so shot is no attack
    }
    assert study.classifiers["zeroshot"].splits["validation"].unparsed == 3
    attacked = study.classifiers["persona"].robustness.variants["charswap"]
    assert (attacked.pdr, attacked.asr) == (pytest.approx(0.5), pytest.approx(0.5))
    assert study.selected == "persona"


@pytest.mark.parametrize("options", [{}, {"sep": ";"}, {"sep": "\t"}, {"sep": " "}])
def test_the_index_that_pandas_writes_is_the_item(tmp_path, options):
    table = pd.DataFrame({"gold": ["a", "b", "a"], "predicted": ["a", None, "b"]}, index=["x", "y", "z"])
    file = tmp_path / "m.csv"
    table.to_csv(file, **options)
    rows = classifiers.read([file]).rows
    assert (list(rows["item"]), list(rows["predicted"])) == (["x", "y", "z"], ["a", None, "b"])


@pytest.mark.parametrize(
    "text", [" item gold predicted\n 1 a a\n 2 b a\n", "item  gold  predicted\n1   a   a\n2 b a\n"]
)
def test_aligned_columns_are_read(tmp_path, text):
    (tmp_path / "m.csv").write_text(text)
    assert list(classifiers.read([tmp_path / "m.csv"]).rows["predicted"]) == ["a", "a"]


def reply(number, **fields):
    """Return a row as `simllm generate --labels --logprobs` writes it."""
    row = {
        "id": f"t{number}",
        "gold": ("pass", "fail")[number % 2],
        "sample": 1,
        "item": f"t{number}",
        "run": "1",
        "predicted": "pass",
        "probabilities": {"pass": 0.75, "fail": 0.25},
        "tokens": 70,
        "reply": "pass",
        "failure": None,
        "finish_reason": "stop",
        "prompt_tokens": 68,
        "completion_tokens": 2,
        "seconds": 0.5,
        "request": {"model": "m", "messages": "0b0b"},
        "logprobs": [{"token": "pass"}],
    }
    return row | fields


def write(file, rows):
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


UNPARSED = {"predicted": None, "probabilities": None}
FAILED = UNPARSED | {"reply": None, "failure": "beyond the context (HTTP status 400)", "tokens": None}


def test_replies_of_a_model_are_read_as_they_are(tmp_path):
    rows = [reply(0, **UNPARSED), reply(1, **FAILED), *(reply(number) for number in range(2, 40))]
    study = classifiers.evaluate(classifiers.read([write(tmp_path / "m.jsonl", rows)]), positive="fail")
    found = study.classifiers["m"].splits["test"]
    assert (found.n, found.unparsed, round(found.metrics["auc"].value, 6)) == (40, 2, 0.5)
    assert "request" not in study.predictions.rows
    assert study.classifiers["m"].costs["tokens"]["sum"] == 39 * 70
    assert [one for one in classifiers.find_warnings(study) if "for good" in one] == [
        "m: of its unparsed outputs, 1 come from requests that failed for good (beyond the context (HTTP "
        "status 400)): the model gave no answer."
    ]


def test_several_samples_are_runs(tmp_path):
    rows = [
        reply(
            number,
            sample=run,
            run=str(run),
            predicted=("pass", "fail")[(number + run) % 2],
            probabilities=None,
        )
        for number in range(12)
        for run in (1, 2, 3)
    ]
    study = classifiers.evaluate(classifiers.read([write(tmp_path / "m.jsonl", rows)]), positive="fail")
    spread = study.classifiers["m"].splits["test"].spread["run"]["accuracy"]
    assert (spread.n, spread.lowest, spread.highest) == (3, 0, 1)


def test_attacks_are_joined_to_their_originals(tmp_path, capsys):
    """Perturbed items keep their originals through `simllm generate`, whose ids differ."""
    items = write(
        tmp_path / "items.jsonl", [{"id": f"t{i}", "text": "Does it really work?"} for i in range(12)]
    )
    main(
        [
            "perturb",
            "text",
            str(items),
            "--rules",
            "case,space",
            "--variants-only",
            "-o",
            str(tmp_path / "v.jsonl"),
        ]
    )
    variants = [json.loads(line) for line in (tmp_path / "v.jsonl").read_text().splitlines()]
    attacked = [
        reply(int(one["original"][1:]))
        | one
        | {"item": one["id"], "predicted": "fail", "probabilities": None}
        for one in variants
    ]
    right = [
        reply(number, predicted=("pass", "fail")[number % 2], probabilities=None) for number in range(12)
    ]
    files = [write(tmp_path / "m.jsonl", right), write(tmp_path / "a.jsonl", attacked)]
    words = ["evaluate", "classifiers", str(files[0]), "--variant", f"m={files[1]}", "--positive", "fail"]
    capsys.readouterr()
    assert main([*words, "--out", str(tmp_path / "r"), "--format", "text", "-q"]) == 0
    assert "m, case: PDR 0.500, ASR 0.500 (12 items)\nm, space: PDR 0.500" in capsys.readouterr().out
    report = json.loads((tmp_path / "r" / "classifiers.json").read_text())["classifiers"]["m"]
    assert report["splits"]["test"]["spread"]["variant"]["accuracy"]["sd"] == pytest.approx(0.288675)
    assert "classifiers-robustness" in (tmp_path / "r" / "tables.tex").read_text()


def test_a_prompt_variant_comes_from_a_file(tmp_path):
    first = write(tmp_path / "m.jsonl", [reply(number) for number in range(12)])
    second = write(tmp_path / "other.jsonl", [reply(number, predicted="fail") for number in range(12)])
    read = classifiers.read([first], variants={("m", "persona"): second})
    study = classifiers.evaluate(read, positive="fail")
    assert list(study.classifiers) == ["m"]
    assert study.classifiers["m"].robustness.variants["persona"].flipped == 1
    with pytest.raises(InputError, match=r"other\.jsonl: has a variant of x, but no file has rows of x"):
        classifiers.read([first], variants={("x", "persona"): second})
    with pytest.raises(InputError, match=r"other\.jsonl: has rows without a variant"):
        classifiers.read([first], variants={("m", ""): second})


def test_without_originals_the_first_of_several_prompts_is_one(tmp_path):
    rows = [
        reply(number, variant=variant, predicted=label)
        for variant, label in (("short", "pass"), ("long", "fail"), ("polite", "pass"))
        for number in range(12)
    ]
    study = classifiers.evaluate(classifiers.read([write(tmp_path / "m.jsonl", rows)]), positive="fail")
    assert list(study.classifiers["m"].robustness.variants) == ["long", "polite"]
    spread = study.classifiers["m"].splits["test"].spread["variant"]["accuracy"]
    assert (spread.n, spread.mean) == (3, 0.5)
    assert (
        "m has no original rows (with an empty variant): short counts as the original."
        in classifiers.find_warnings(study)
    )


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("m=", "expected NAME=VALUE"),
        ("m:=f", "expected NAME:VARIANT=FILE"),
        (":x=f", "expected NAME:VARIANT=FILE"),
        ("m:x=missing.jsonl", "missing.jsonl: cannot be read"),
    ],
)
def test_a_wrong_variant_is_one_line(tmp_path, capsys, option, message):
    file = write(tmp_path / "m.jsonl", [reply(number) for number in range(4)])
    words = [str(file), "--variant", option, "--positive", "fail", "--out", str(tmp_path / "r")]
    assert main(["evaluate", "classifiers", *words]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n"), message in err) == ("", 1, True)


def test_folds_have_a_mean_and_an_sd(tmp_path):
    right = [[1, 1, 1, 1], [1, 1, 1, 0], [1, 1, 0, 0]]  # the accuracies of three folds: 1, .75, .5
    rows = [
        (f"{fold}-{number}", "yn"[number % 2], "yn"[(number + 1 - ok) % 2], fold)
        for fold, each in enumerate(right)
        for number, ok in enumerate(each)
    ]
    file = tmp_path / "m.csv"
    pd.DataFrame(rows, columns=["item", "gold", "predicted", "fold"]).to_csv(file, index=False)
    study = classifiers.evaluate(classifiers.read([file]), positive="y")
    found = study.classifiers["m"].splits["test"].spread
    assert set(found) == {"fold"}
    file.write_text(file.read_text() + "x,y,n,\n")  # a row without a fold
    lacking = classifiers.evaluate(classifiers.read([file]), positive="y")
    assert lacking.classifiers["m"].splits["test"].spread == found
    said = "m: 1 of 13 rows have no fold, as others do; the mean and SD over folds leave them out."
    assert said in classifiers.find_warnings(lacking)
    accuracy = found["fold"]["accuracy"]
    assert (accuracy.n, accuracy.mean, accuracy.sd) == (3, 0.75, pytest.approx(0.25))
    assert (accuracy.lowest, accuracy.highest) == (0.5, 1)
