"""The command `simllm split`: shares, strata and groups of items."""

import csv

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pandas import DataFrame

from simllm.evaluation.split import SplitPlan, split_items
from tests.command import run


@pytest.fixture
def items(tmp_path):
    file = tmp_path / "items.csv"
    rows = [f"{i},{'yes' if i % 4 else 'no'},suite{i % 5}" for i in range(100)]
    file.write_text("\n".join(["item,gold,suite", *rows]) + "\n")
    return file


def split(items, *words):
    done = run("split", items, *words)
    assert done.returncode == 0, done.stderr
    return list(csv.DictReader(done.stdout.splitlines()))


def test_holdout_keeps_the_strata(items):
    rows = split(items, "--test", "0.2", "--validation", "0.2", "--stratify", "gold,suite")
    for name, size in (("test", 20), ("validation", 20), ("train", 60)):
        chosen = [row for row in rows if row["split"] == name]
        assert len(chosen) == size
        assert sum(row["gold"] == "no" for row in chosen) == size / 4
        assert {row["suite"] for row in chosen} == {f"suite{i}" for i in range(5)}
    assert rows == split(items, "--test", "0.2", "--validation", "0.2", "--stratify", "gold,suite")
    assert rows != split(
        items, "--test", "0.2", "--validation", "0.2", "--stratify", "gold,suite", "--seed", "1"
    )


def test_folds(items):
    rows = split(items, "--method", "k-fold", "--folds", "5", "--stratify", "gold")
    assert [sum(row["fold"] == str(k) for row in rows) for k in range(1, 6)] == [20] * 5
    rows = split(items, "--method", "leave-one-group-out", "--group", "suite")
    assert len({(row["fold"], row["suite"]) for row in rows}) == 5
    rows = split(items, "--method", "leave-one-out")
    assert sorted(int(row["fold"]) for row in rows) == list(range(1, 101))


groups = st.lists(st.sampled_from("abcdef"), min_size=12, max_size=60).filter(lambda each: len(set(each)) > 3)


@settings(max_examples=30)
@given(groups, st.sampled_from(["holdout", "k-fold"]), st.integers(0, 5))
def test_groups_stay_whole(names, method, seed):
    rows = DataFrame({"item": range(len(names)), "group": names})
    parts = split_items(rows, SplitPlan(method, test=0.3, folds=3, group="group", seed=seed))
    assert (parts.groupby(rows["group"]).nunique() == 1).all()
    assert parts.nunique() == {"holdout": 2, "k-fold": 3}[method]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--group", "team"], "no column team; there are item, gold, suite"),
        (["--test", "1.5"], "expected shares from 0 that are at most 1 together"),
        (["--method", "k-fold", "--folds", "200"], "200 folds: expected from 2 to 100"),
        (["--method", "leave-one-group-out"], "leave-one-group-out needs --group"),
        (
            ["--method", "k-fold", "--folds", "3", "--stratify", "item"],
            "only 1 of the items have 99; stratifying needs 3",
        ),
        (["--test", "0.3", "--stratify", "item"], "only 1 of the items have 99; stratifying needs 2"),
    ],
)
def test_bad_input_is_one_line(items, words, message):
    done = run("split", items, *words)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert message in done.stderr


def test_a_split_is_not_replaced(items, tmp_path):
    out = tmp_path / "split.csv"
    assert run("split", items, "-o", out).returncode == 0
    before = out.read_text()
    assert "exists already" in run("split", items, "-o", out).stderr
    assert "has a column split already" in run("split", out).stderr
    assert out.read_text() == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--folds", "5"], "--folds goes with --method k-fold, not holdout"),
        (["--method", "k-fold", "--test", ".3"], "--test and --validation go with --method holdout"),
        (
            ["--method", "k-fold", "--group", "suite"],
            "10 folds: expected from 2 to 5, the number of the groups",
        ),
    ],
)
def test_options_of_another_method_are_refused(items, words, message):
    done = run("split", items, *words)
    assert done.returncode == 2
    assert message in done.stderr


def test_sizes_are_told(items):
    assert "100 items: train 70, test 30" in run("split", items, "--test", ".3").stderr


def test_stratified_groups_keep_the_share(items):
    for share in (0.2, 0.4, 0.6):
        rows = split(items, "--test", share, "--stratify", "gold", "--group", "suite")
        assert sum(row["split"] == "test" for row in rows) == 100 * share


@pytest.mark.parametrize(
    ("text", "words", "message"),
    [
        ("item,gold\n1,y\n1,y\n2,n\n", [], "an item stands in several rows"),
        ("item,gold,suite\n1,y,\n2,n,a\n3,n,b\n", ["--group", "suite"], "row 1: nothing under suite"),
        ("item,gold\n1,y\n2,n\n", ["--seed", "-1"], "seed -1: expected a number from 0"),
        ("item,gold\n1,y\n2,n\n", ["--method", "leave-one-out", "--group", "gold"], "takes neither"),
    ],
)
def test_items_and_plans_that_do_not_fit_are_refused(tmp_path, text, words, message):
    (tmp_path / "items.csv").write_text(text)
    done = run("split", tmp_path / "items.csv", *words)
    assert (done.returncode, message in done.stderr) == (2, True), done.stderr


def test_parts_that_say_little_are_named(tmp_path):
    rows = [f"{i},{'rare' if i < 2 else 'usual'},{'big' if i < 30 else i}" for i in range(40)]
    (tmp_path / "items.csv").write_text("\n".join(["item,gold,team", *rows]) + "\n")
    few = run("split", tmp_path / "items.csv", "--test", ".1", "--seed", "1").stderr.splitlines()
    assert few == [
        "simllm: warning: parts with fewer than 10 items say little: test (4)",
        "simllm: warning: parts without an item of a class: test: rare; --stratify gold spreads them",
        "simllm: 40 items: train 36, test 4",
    ]
    whole = run("split", tmp_path / "items.csv", "--group", "team", "--test", ".2", "--seed", "3").stderr
    assert "warning: the test data are 8% of the items, not 20%" in whole
    assert "warning" not in run("split", tmp_path / "items.csv", "--test", ".5", "--stratify", "gold").stderr


def test_equal_items_in_several_parts_are_named(tmp_path):
    rows = [f"{i // 2}{'.0' if i % 2 else ''},the text of the item with number {i // 4}" for i in range(80)]
    (tmp_path / "items.csv").write_text("\n".join(["item,text", *rows]) + "\n")
    said = run("split", tmp_path / "items.csv", "--method", "k-fold", "--folds", "2").stderr
    assert "ids equal but for case or form of a number in several parts: " in said
    assert "a leak" in said
    rows = [f"{i},the text of the item with number {i if i else 1}" for i in range(80)]
    (tmp_path / "items.csv").write_text("\n".join(["item,text", *rows]) + "\n")
    parts = {run("split", tmp_path / "items.csv", "--seed", seed).stderr.splitlines()[0] for seed in range(8)}
    rows = [f"{i}," if i < 9 else f"{i},the text of the item with number {i // 2}" for i in range(80)]
    (tmp_path / "gaps.csv").write_text("\n".join(["item,text", *rows]) + "\n")
    said = run("split", tmp_path / "gaps.csv", "--method", "k-fold", "--folds", "2").stderr
    assert "simllm: warning: equal text in several parts: " in said
    leak = "simllm: warning: equal text in several parts: 1 (the text of the item with number 1); a leak"
    assert parts == {leak, "simllm: 80 items: train 64, test 16"}
