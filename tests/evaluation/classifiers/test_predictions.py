"""Reading of predictions: the formats, and error messages of one line for bad input."""

import json
import time

import pytest
from pandas.testing import assert_frame_equal

from simllm.errors import InputError
from simllm.evaluation import classifiers
from simllm.evaluation.classifiers.predictions import PLACE
from tests.command import run


@pytest.mark.parametrize("separator", [",", "\t", ";", " "])
def test_csv_with_any_separator(tmp_path, separator):
    file = tmp_path / "model.csv"
    lines = ["item gold predicted confidence suite", "a yes yes 0.9 x", "b no yes 0.6 y"]
    file.write_text("\n".join(line.replace(" ", separator) for line in lines) + "\n")
    rows = classifiers.read([file]).rows
    assert rows["classifier"].tolist() == ["model", "model"]
    assert rows["confidence"].tolist() == [0.9, 0.6]
    assert rows["split"].tolist() == ["test", "test"]


def test_csv_and_json_lines_are_read_alike(tmp_path):
    table, lines = tmp_path / "m.csv", tmp_path / "m.jsonl"
    table.write_text('item,gold,predicted,p:bug,p:docs\n1,bug,,.5,.5\n2,docs,"docs",.2,.8\n')
    rows = [
        {"item": 1, "gold": "bug", "predicted": None, "probabilities": {"bug": 0.5, "docs": 0.5}},
        {"item": 2, "gold": "docs", "predicted": "docs", "probabilities": {"bug": 0.2, "docs": 0.8}},
    ]
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
    first, second = (classifiers.read([file]).rows.drop(columns=PLACE) for file in (table, lines))
    columns = sorted(first.columns)
    assert columns == sorted(second.columns)
    assert_frame_equal(first[columns], second[columns])


def test_columns_can_be_renamed_and_scores_become_labels(tmp_path):
    file = tmp_path / "m.csv"
    file.write_text("item,label,score\n1,yes,3\n2,no,-1\n3,yes,\n")
    rows = classifiers.read([file], {"gold": "label"}, threshold=0, positive="yes").rows
    assert rows["predicted"].tolist() == ["yes", "no", None]


def test_a_positive_class_that_no_row_has_is_named(tmp_path):
    file = tmp_path / "m.csv"
    file.write_text("item,gold,score\n1,yes,3\n2,no,-1\n")
    with pytest.raises(InputError, match="no row has the gold yess, which is the positive class"):
        classifiers.read([file], threshold=0, positive="yess")


GOOD = "item,gold,predicted"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{GOOD}\n1,a,a\n1,a,b\n", "m.csv, row 2: repeats m.csv, row 1"),
        (f"{GOOD},split\n1,a,a,test\n1,b,b,train\n", "row 2: item 1 has the gold b, and a before"),
        (f"{GOOD},confidence\n1,a,a,1.5\n", "row 1: expected a confidence from 0 to 1"),
        (f"{GOOD},confidence\n1,a,a,x\n", "row 1: expected a number under confidence, not 'x'"),
        (f"{GOOD},p:a,p:b\n1,a,a,.5,.4\n", "row 1: the probabilities do not add up to 1"),
        (f"{GOOD},score,confidence\n1,a,a,1,1\n", "row 1: more than one of confidence, probability"),
        (f"{GOOD},variant\n1,a,a,typo\n", "row 1: a variant of an item that has no original row"),
        (f"{GOOD},confidense\n1,a,a,.5\n", "unknown column confidense; did you mean confidence?"),
        (f"{GOOD},split\n1,a,a,dev\n", "row 1: expected the split train, validation or test"),
        (f"{GOOD},seconds\n1,a,a,-1\n", "row 1: negative seconds"),
        ("item,predicted\n1,a\n", "no column gold; it has item, predicted"),
        (f"{GOOD}\n,a,a\n", "row 1: empty item"),
        (f"{GOOD}\n1,a\n", "row 1: 2 values for 3 columns"),
        (f"{GOOD}\n", "no rows in it"),
        ("", "no rows in it"),
        ("item,item,gold\n1,a,a\n", "two columns are called item"),
        (f"{GOOD}\n1,a,a\n2,b,b\n", "the classes are a, b; name the positive one by --positive"),
        (f"{GOOD}\n1,a,a,a,a\n", "row 1: 5 values for 3 columns"),
    ],
)
def test_bad_input_is_one_line(tmp_path, text, message):
    (tmp_path / "m.csv").write_text(text)
    done = run("evaluate", "classifiers", "m.csv", "--out", "report", cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "report").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--positive", "c"], "no row has the positive class c; the classes are a, b"),
        (["--positive", "a", "--groups", "suite"], "no column suite for groups"),
        (["--positive", "a", "--columns", "gold=label"], "no column label; it has item, gold, predicted"),
        (["--positive", "a", "--columns", "golden=gold"], "unknown column golden"),
        (["--positive", "a", "--select-by", "f3"], "unknown metric f3; known: precision"),
        (["--positive", "a", "--alpha", "2"], "alpha 2.0: expected a number between 0 and 1"),
        (["--positive", "a", "--bins", "0"], "0 bins: expected from 1 to 1,000"),
        (["--positive", "a", "--matrix", "x=1,2"], "expected NAME=TP,FP,FN,TN"),
        (["--positive", "a", "--matrix", "m=1,2,3,4"], "the matrix m has the name of a classifier"),
        (["--positive", "a", "--about", "none.toml"], "none.toml: cannot be read"),
        (["--ratings", "m.csv"], "expected files of predictions, or --ratings"),
    ],
)
def test_bad_options_are_one_line(tmp_path, words, message):
    (tmp_path / "m.csv").write_text(f"{GOOD}\n1,a,a\n2,b,b\n")
    done = run("evaluate", "classifiers", "m.csv", "--out", "report", *words, cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert message in done.stderr


def test_a_variant_of_another_file_is_no_original(tmp_path):
    (tmp_path / "a.csv").write_text(f"{GOOD}\n1,a,a\n")
    (tmp_path / "b.csv").write_text(f"{GOOD},variant\n1,a,a,typo\n")
    with pytest.raises(InputError, match=r"b\.csv, row 1: a variant of an item"):
        classifiers.read([tmp_path / "a.csv", tmp_path / "b.csv"])


def test_long_numbers_take_linear_time(tmp_path):
    file = tmp_path / "predictions.csv"
    file.write_text(f"item,gold,predicted\n1,yes,{100_000 * '1'}x\n2,no,no\n")
    started = time.process_time()
    assert len(classifiers.read([file]).rows) == 2
    assert time.process_time() - started < 20
