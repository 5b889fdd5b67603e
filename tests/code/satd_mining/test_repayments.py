"""The rules for repayments of technical debt: what fulfils each rule and what breaks it."""

from pathlib import PurePath
from textwrap import indent

import pytest

from simllm.code.git_history import FileVersions
from simllm.code.languages.language import LANGUAGE_OF_SUFFIX
from simllm.code.satd_mining.comments import DebtWords
from simllm.code.satd_mining.repayments import RULES, find_repayments

ALL = len(RULES)


def find(before, after, path="a.py"):
    contents = (code.encode(errors="surrogateescape") for code in (before, after))
    language = LANGUAGE_OF_SUFFIX[PurePath(path).suffix]
    return list(find_repayments(FileVersions("c" * 40, path, *contents, language), DebtWords()))


BEFORE = """\
def price(amount):
    # TODO: subtract the discount
    return amount
"""
AFTER = """\
def price(amount):
    return amount - discount(amount)
"""


def test_repayment():
    [(fulfilled, found)] = find(BEFORE, AFTER)
    assert fulfilled == ALL
    assert (found.commit, found.path, found.function, found.language) == ("c" * 40, "a.py", "price", "python")
    assert found.comment == "# TODO: subtract the discount"
    assert (found.source, found.reference) == (BEFORE.rstrip(), AFTER.rstrip())


@pytest.mark.parametrize(
    "word",
    "TODO todo: Todo(me) @todo #todo FIXME! HACK @hack XXX xxx:".split(),
)
def test_every_word_that_admits_debt_leads_to_a_repayment(word):
    assert [fulfilled for fulfilled, _ in find(BEFORE.replace("TODO:", word), AFTER)] == [ALL]


@pytest.mark.parametrize(
    "word", ["to do", "mastodons", "XXXL", "TODOs", "autotodo", "fixme_later", "hacky", "NOTE"]
)
def test_other_words_lead_to_no_repayment(word):
    assert find(BEFORE.replace("TODO:", word), AFTER) == []


# Code before and after, and the number of fulfilled rules for each deleted comment.
CASES = {
    "two words": (BEFORE.replace("subtract the discount", "discount"), AFTER, [1]),
    "three words": (BEFORE.replace("subtract the discount", "the discount"), AFTER, [ALL]),
    "not at a function": ("# TODO: use another name\nx = 1\n" + BEFORE, "y = 1\n" + BEFORE, [2]),
    "function deleted": (BEFORE, "def other():\n    return 1\n", [3]),
    "function renamed": (BEFORE, AFTER.replace("price", "cost"), [3]),
    "function of another class": ("class A:\n" + indent(BEFORE, " "), AFTER, [3]),
    "only the comment deleted": (BEFORE, BEFORE.replace("    # TODO: subtract the discount\n", ""), [4]),
    "comments and layout": (BEFORE, "def price( amount ) :\n    # as agreed\n    return (amount)\n", [4]),
    "other debt before": (BEFORE.replace("amount\n", "amount  # FIXME\n"), AFTER, [5, 1]),
    "other comment before": (BEFORE.replace("amount\n", "amount  # in cents\n"), AFTER, [ALL]),
    "debt after": (BEFORE, AFTER + "    # FIXME: the discount may be missing\n", [6]),
    "debt above, after": (BEFORE, "# HACK: rounds too late\n" + AFTER, [6]),
    "debt in another function": (BEFORE, AFTER + "\n\ndef g():\n    # TODO: write it\n    pass\n", [ALL]),
    "debt unchanged": (BEFORE, BEFORE.replace("return amount", "return +amount"), []),
    "debt indented": (BEFORE, BEFORE.replace("    # TODO", "    if amount:\n        # TODO"), []),
    "moved to another function": (
        BEFORE,
        AFTER + "\n\ndef other():\n    # TODO: subtract the\n    # discount\n    return 1\n",
        [],
    ),
    "moved to the file": (BEFORE, "# TODO: subtract the discount\n\nx = 1\n\n\n" + AFTER, []),
    "deleted here, kept elsewhere": (
        BEFORE + "\n\n" + BEFORE.replace("price", "cost"),
        AFTER + "\n\n" + BEFORE.replace("price", "cost"),
        [ALL, 4],
    ),
    "same debt twice": (BEFORE + "    # TODO: subtract the discount\n", AFTER, [5, 5]),
    "debt only in a string": (BEFORE.replace("# TODO: subtract the discount", "'TODO: a b'"), AFTER, []),
    "line ends": (BEFORE.replace("\n", "\r\n"), AFTER, [ALL]),
    "line ends only": (BEFORE.replace("\n", "\r\n"), BEFORE, []),
    "not UTF-8": ("# \udcff\n" + BEFORE, "# \udcff\n" + AFTER, [ALL]),
}


@pytest.mark.parametrize("name", CASES)
def test_each_rule(name):
    before, after, expected = CASES[name]
    found = find(before, after)
    assert [fulfilled for fulfilled, _ in found] == expected
    assert [repayment is not None for _, repayment in found] == [number == ALL for number in expected]


def test_comment_above_is_part_of_the_source():
    before = BEFORE.replace("    # TODO: subtract the discount\n", "")
    [(_, found)] = find("# TODO: subtract it\n# the discount\n\n" + before, AFTER)
    assert found.comment == "# TODO: subtract it\n# the discount"
    assert found.source == "# TODO: subtract it\n# the discount\n\n" + before.rstrip()
    assert found.reference == AFTER.rstrip()


JAVA = """\
class Shop {
    /* Our prices. */

    /**
     * Computes the price.%s
     */
    int price(int amount) { return amount%s; }
}
"""


def test_rewritten_comment_above_is_part_of_the_reference():
    debt, after = JAVA % ("\n     * TODO: subtract the discount", ""), JAVA % ("", " - discount")
    [(fulfilled, found)] = find(debt, after, "A.java")
    assert fulfilled == ALL
    assert found.source.startswith("    /**\n     * Computes the price.\n     * TODO")
    assert found.reference.startswith("    /**\n     * Computes the price.\n     */\n    int price")


def test_other_comment_above_is_no_part_of_the_reference():
    debt, after = JAVA % ("\n     * TODO: subtract the discount", ""), JAVA % ("", " - discount")
    without = after.replace("    /**\n     * Computes the price.\n     */\n", "")
    [(_, found)] = find(debt, without, "A.java")
    assert found.reference == "    int price(int amount) { return amount - discount; }"


def test_overloaded_functions_are_paired_by_their_signature():
    code = "class A {\n void f(int a) { %s }\n void f(String a) { %s }\n}\n"
    debt = "/* TODO: check the argument */ g(a);"
    [(fulfilled, found)] = find(code % (debt, "g(1);"), code % ("check(a); g(a);", "g(2);"), "A.java")
    assert fulfilled == ALL
    assert found.reference == " void f(int a) { check(a); g(a); }"
    after = (code % ("check(a); g(a);", "g(2);")).replace("int a", "long a")
    assert [fulfilled for fulfilled, _ in find(code % (debt, "g(1);"), after, "A.java")] == [3]


SNIPPETS = {
    "python": ("def f():\n    {}\n    return {}\n", "#"),
    "java": ("class A {{\n int f() {{\n {}\n return {}; }} }}\n", "//"),
    "javascript": ("const f = () => {{\n {}\n return {}; }}\n", "//"),
    "typescript": ("export const f = (): number => {{\n {}\n return {}; }}\n", "//"),
    "go": ("package a\nfunc f() int {{\n {}\n return {}\n}}\n", "//"),
    "ruby": ("def f\n {}\n return {}\nend\n", "#"),
    "php": ("<?php\nfunction f() {{\n {}\n return {}; }}\n", "//"),
    "cpp": ("int f() {{\n {}\n return {}; }}\n", "//"),
}


@pytest.mark.parametrize("suffix", LANGUAGE_OF_SUFFIX)
def test_every_file_suffix(suffix):
    code, mark = SNIPPETS[LANGUAGE_OF_SUFFIX[suffix]]
    debt = f"{mark} TODO: return the sum"
    [(fulfilled, found)] = find(code.format(debt, 1), code.format("", 2), f"a{suffix}")
    assert (fulfilled, found.comment, found.language) == (ALL, debt, LANGUAGE_OF_SUFFIX[suffix])
    assert debt in found.source
