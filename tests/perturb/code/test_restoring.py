"""Old names in the place of new ones, in rewritten code and in other texts."""

import pytest

from simllm.perturb.code import rename_text, restore, restore_functions, rewrite
from simllm.perturb.code.restoring import uses_new_function

SOURCE = "int f(int a, int b) {\n    // a and b\n    int total = a + b;\n    return total;\n}\n"


def test_renamed_code_can_be_restored():
    rules = ("rename-function", "rename-parameter", "rename-variable")
    found = rewrite(SOURCE, "java", rules, "plain")
    assert found.names == {"f": "f0", "a": "p0", "b": "p1", "total": "v0"}
    assert (
        found.text == "int f0(int p0, int p1) {\n    // a and b\n    int v0 = p0 + p1;\n    return v0;\n}\n"
    )
    assert restore(found.text, found.names) == SOURCE
    assert rename_text("f(1, 2) at Unit.f, fa", found.names) == "f0(1, 2) at Unit.f0, fa"


PYTHON = "def tally(items, index):\n    return 0\n"
NAMES = {"cnt": "tally", "xs": "items", "k": "index"}


@pytest.mark.parametrize(
    ("answer", "restored"),
    [
        (  # methods, keyword arguments, strings and comments are not the function
            "def tally(items, index):\n    # tally()\n    x = 'tally()'\n"
            "    return items.index(index) + items.tally(tally=1)\n",
            "def cnt(items, index):\n    # tally()\n    x = 'tally()'\n"
            "    return items.index(index) + items.tally(tally=1)\n",
        ),
        (
            "import math\ndef tally(a):\n    return tally(a[1:]) + f'{tally(a)}'\n",
            "import math\ndef cnt(a):\n    return cnt(a[1:]) + f'{cnt(a)}'\n",
        ),
        ("def other(tally):\n    return tally(1)\n", None),  # a name of the answer's own
        ("def other():\n    tally = {}\n    return tally\n", None),
        ("class A:\n    def tally(self):\n        pass\n", None),
        ("from tools import tally\n", None),
        ("def tally(a):\n    cnt = 0\n    return tally(a) + cnt\n", None),  # the old name is taken there
        ("def tally(a):\n    return cnt(a)\n", None),
        ("def tally(a):\n    cnt = 0\n    return cnt\n", "def cnt(a):\n    cnt = 0\n    return cnt\n"),
        (
            "def tally(self, a):\n    return self.tally(a) + a.tally(self)\n",
            "def cnt(self, a):\n    return self.cnt(a) + a.tally(self)\n",
        ),
        ("print(tally([1], 1))\n", "print(cnt([1], 1))\n"),
        ("return tally(items, 1)  # tally(1)", "return cnt(items, 1)  # tally(1)"),
        (
            "So:\n```python\ndef tally(items, index):\n    return items.index(index)\n```\nIt uses `index`.",
            "So:\n```python\ndef cnt(items, index):\n    return items.index(index)\n```\nIt uses `k`.",
        ),
        ("Returns the index of the items.", None),  # these are ordinary words
        ("tally", "cnt"),
    ],
)
def test_only_functions_are_restored_in_python(answer, restored):
    assert restore_functions(answer, PYTHON, "python", NAMES) == (answer if restored is None else restored)


@pytest.mark.parametrize(
    ("answer", "restored"),
    [
        (
            "int sum(int n) {\n    int sum; // sum(\n    return sum + x.sum(3) + this.sum(2) + sum(1);\n}",
            "int add(int n) {\n    int sum; // sum(\n    return sum + x.sum(3) + this.add(2) + add(1);\n}",
        ),
        (
            "class A { int sum(int n) { return A.sum(n) + list.map(this::sum).map(B::sum); } }",
            "class A { int add(int n) { return A.add(n) + list.map(this::add).map(B::sum); } }",
        ),
        ("int sum(int n) { return add(n); }", None),  # the old name means something else
        ("int g() { return new B() { int sum(int n) { return sum(n); } }.sum(1); }", None),
        ("return sum(1) + q.sum(2);", "return add(1) + q.sum(2);"),
        ("- return sum(a);\n+ return sum(a, q.sum(1));", "- return add(a);\n+ return add(a, q.sum(1));"),
        ("adds v0 to the sum", "adds n to the sum"),
    ],
)
def test_only_methods_of_the_variant_are_restored_in_java(answer, restored):
    variant, names = "int sum(int v0) {\n    return v0;\n}", {"add": "sum", "n": "v0"}
    assert restore_functions(answer, variant, "java", names) == (answer if restored is None else restored)


def test_rewritten_code_gets_the_old_name_of_its_function():
    for language, source in (("java", SOURCE), ("python", "def f(a):\n    return f(a) + a.f\n")):
        found = rewrite(source, language, ["rename-function"], "plain")
        assert restore_functions(found.text, found.text, language, found.names) == source


def test_an_answer_that_keeps_the_new_name_is_noticed():
    assert uses_new_function("def tally(a):\n    return cnt(a)\n", PYTHON, "python", NAMES)
    assert not uses_new_function("def cnt(a):\n    return a.tally(1)\n", PYTHON, "python", NAMES)


def test_strings_without_end_take_linear_time():
    answer = "x = tally(" + '"' + '\\"' * 300_000
    assert restore_functions(answer, PYTHON, "python", NAMES) == answer.replace("tally", "cnt")
