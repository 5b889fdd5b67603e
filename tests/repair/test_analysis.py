"""Lengths of programs, tokens by kind of prompt, and hunks."""

import math
from dataclasses import replace

import pytest
from scipy.stats import mannwhitneyu

from simllm.code.line_diff import count_hunks
from simllm.repair.analysis import code_lengths, fix_hunks, prompt_kinds
from simllm.repair.items import RepairItem
from tests.repair.made_attempts import attempt


def item(name, lines, fix=None):
    return RepairItem(name, "x = 1\n" * lines, "python", "d", fix=fix)


def test_longer_programs_are_repaired_less():
    items = [item(str(n), n) for n in range(1, 11)]
    attempts = [attempt(str(n), k, n <= 5 and k == 1) for n in range(1, 11) for k in (1, 2)]
    found = code_lengths(items, attempts)
    assert (found.repaired, found.repaired_median, found.others, found.others_median) == (5, 3, 5, 8)
    expected = mannwhitneyu(range(1, 6), range(6, 11))
    assert (found.u, found.p) == (expected.statistic, expected.pvalue) == (0, pytest.approx(2 / 252))
    assert found.smallest_p == pytest.approx(2 / 252)
    assert found.warning is None


def test_few_items_and_empty_sides_are_said():
    items = [item(str(n), n) for n in (1, 2, 3)]
    found = code_lengths(items, [attempt("1", 1, True), attempt("2", 1, False), attempt("3", 1, False)])
    assert "1 repaired and 2 other items: no difference can be significant" in found.warning
    for accepted, word in ((True, "every"), (False, "no")):
        found = code_lengths(items, [attempt(str(n), 1, accepted) for n in (1, 2, 3)])
        assert math.isnan(found.p)
        assert f"{word} item is repaired" in found.warning


def test_open_attempts_do_not_count():
    found = code_lengths(
        [item("1", 1), item("2", 2)], [attempt("1", 1, True), attempt("2", 1, True, open="x")]
    )
    assert (found.repaired, found.others) == (1, 0)


def test_tokens_by_kind_of_prompt():
    rounds = attempt("1", 1, True, 3, tokens=(10, 7)).rounds
    kinds = ("guidance", "tests", "tests")
    one = replace(
        attempt("1", 1, True), rounds=tuple(replace(r, kind=k) for r, k in zip(rounds, kinds, strict=True))
    )
    found = {row.kind: row for row in prompt_kinds([one, one])}
    assert (found["tests"].requests, found["tests"].accepted, found["tests"].prompt_tokens) == (4, 2, 10)
    unknown = replace(one, rounds=tuple(replace(r, prompt_tokens=None) for r in one.rounds))
    assert prompt_kinds([unknown])[0].prompt_tokens is None


def test_hunks_of_fixes_and_patches():
    code = "a\nb\nc\nd\ne\n"
    fixes = {"1": "a\nB\nc\nd\ne\n", "2": "A\nb\nC\nd\ne\n", "3": "A\nb\nC\nd\nE\nf\n", "none": None}
    items = [RepairItem(name, code, "python", "d", fix=fix) for name, fix in fixes.items()]
    attempts = [attempt(name, 1, name != "2") for name in fixes]
    attempts[0] = replace(attempts[0], rounds=(replace(attempts[0].rounds[0], code=fixes["2"]),))
    found = fix_hunks(items, attempts)
    assert [(row.hunks, row.items, row.average) for row in found] == [
        ("1", 1, 1),
        ("2", 1, 0),
        ("3 or more", 1, 1),
    ]
    assert (found[0].patch_hunks, found[1].patch_hunks) == (2, None)


def test_hunks_are_blocks_of_neighbouring_lines():
    assert count_hunks("abc", "abc") == 0
    assert count_hunks("abcde", "aXXde") == 1
    assert count_hunks("abcde", "Xabcd") == 2
    assert count_hunks("", "ab") == 1
