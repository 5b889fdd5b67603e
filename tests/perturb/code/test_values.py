"""Names that fit the kind of their values."""

import pytest

from simllm.perturb.code import rewrite
from simllm.perturb.code.names import synonyms
from simllm.perturb.code.values import kind_of_type


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ("int", "number"),
        ("java.math.BigDecimal", "number"),
        ("String", "text"),
        ("char", "text"),
        ("boolean", "truth"),
        ("int[]", "list"),
        ("List<Map<String,Integer>>", "list"),
        ("Map<String,List<X>>", "map"),
        ("HashMap", "map"),
        ("Tree.Node", "object"),
        ("T", ""),
        ("var", ""),
        ("Object", ""),
        ("list[int]", "list"),
        ("typing.Dict[str, int]", "map"),
        ("", ""),
    ],
)
def test_types_tell_the_kind_of_values(written, kind):
    assert kind_of_type(written) == kind


def new_names(source, language):
    return rewrite(source, language, ["rename-parameter", "rename-variable"]).names


def test_java_types_decide_between_synonyms():
    names = new_names(
        "int f(int s, String n, boolean d, char c, Node v) { var t = 0; String w = n; return s + t; }", "java"
    )
    assert names == {
        "s": "sum",
        "n": "name",
        "d": "data",
        "c": "letter",
        "v": "value",
        "t": "total",
        "w": "word",
    }
    assert new_names("int f(int[] s, List<String> n, Map<String, Integer> m) { return 0; }", "java") == {
        "s": "values",
        "n": "items",
        "m": "map",
    }


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("def f(n):\n    return n % 2\n", {"n": "count"}),
        ("def f(n):\n    return n.strip()\n", {"n": "name"}),
        ("def f(n: 'list[int]'):\n    return n[0]\n", {"n": "values"}),
        ("def f(n: int | None = None):\n    return g(n)\n", {"n": "count"}),
        ("def f():\n    s = 0\n    return s\n", {"s": "number"}),
        ("def f():\n    s = ''\n    return s\n", {"s": "text"}),
        ("def f(x):\n    s = {}\n    s[x] = 1\n    return s\n", {"s": "mapping", "x": "value"}),
        ("def f(t):\n    return [i for i in range(len(t))]\n", {"t": "values", "i": "index"}),
        # Nothing tells the kind, so that only words without a kind are used.
        ("def f(s):\n    return g(s)\n", {"s": "item"}),
    ],
)
def test_hints_in_python_decide_between_synonyms(source, names):
    assert new_names(source, "python") == names


def test_only_the_last_word_has_to_fit():
    assert list(synonyms("maxWidth", "variable", "number"))[:2] == ["maximumWidth", "maxBreadth"]
    assert "textRecords" not in list(synonyms("textLines", "variable", "number"))
    # The kind of a function's own values is not its result.
    assert "tally" in list(synonyms("counter", "function", "text"))
