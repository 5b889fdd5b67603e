"""Rewriting of code by rules: reported edits and lines, the share of places, the seed, and bad input."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simllm import InputError
from simllm.perturb.code import DEFAULT_RULES, rewrite

TOO_DEEP = "line 1: the code is nested too deeply"
LONG = " || ".join(["a > 1"] * 1000)
SOURCE = """int grade(int[] marks, int limit) {
    int good = 0;
    for (int i = 0; i < marks.length; i++) {
        if (marks[i] == -1) {
            continue;
        } else if (marks[i] >= limit) {
            good++;
        } else {
            good--;
        }
    }
    return good;
}
"""


def test_edits_counts_and_lines_describe_the_variant():
    found = rewrite(SOURCE, "java", names="plain")
    text = SOURCE
    for edit in reversed(found.edits):
        text = text[: edit.start] + edit.text + text[edit.end :]
    assert text == found.text
    assert found.counts == {
        "rename-function": 1,
        "rename-parameter": 2,
        "rename-variable": 2,
        "for-to-while": 1,
        "nest-else-if": 1,
        "reverse-if": 2,
        "swap-relation": 2,
        "swap-equals": 1,
        "expand-increment": 4,
    }
    lines, originals = found.text.splitlines(), SOURCE.splitlines()
    for line, number in zip(lines, found.line_map, strict=True):
        if "return" in line or "continue" in line:
            assert number is not None
            assert line.split()[0] == originals[number - 1].split()[0]


@given(st.floats(0, 1), st.integers(0, 10**6))
def test_a_share_is_chosen_by_the_seed(share, seed):
    found = rewrite(SOURCE, "java", names="plain", share=share, seed=seed)
    again = rewrite(SOURCE, "java", names="plain", share=share, seed=seed)
    assert found == again
    whole = rewrite(SOURCE, "java", names="plain")
    assert found.counts["for-to-while"] <= whole.counts["for-to-while"]
    if share == 0:
        assert (found.text, sum(found.counts.values())) == (SOURCE, 0)


def test_rules_run_in_the_given_order():
    source = "int f(int n) {\n    for (int i = 0; i < n; i++) { n--; }\n    return n;\n}"
    first = rewrite(source, "java", ["expand-increment", "for-to-while"]).text
    second = rewrite(source, "java", ["for-to-while", "expand-increment"]).text
    assert first == second
    assert rewrite(source, "java", ["for-to-while"]).text != first


def test_a_file_of_one_function_keeps_the_names_that_callers_use():
    source = "def scale(value, by=2):\n    sum = value\n    return sum * by\n"
    names = {"scale": "f0", "value": "p0", "by": "p1", "sum": "v0"}
    assert rewrite(source, "python", names=names).names == names
    found = rewrite(source, "python", names=names, is_file=True)
    assert found.names == {"sum": "v0"}
    assert found.text == source.replace("sum", "v0")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"language": "go"}, "cannot rewrite 'go'; expected one of java, python"),
        ({"rules": ["reverse"]}, "unknown rule 'reverse'; known: rename-function"),
        ({"rules": []}, "expected the name of at least one rule; known: rename-function"),
        ({"share": 1.5}, "share must lie between 0 and 1, not 1.5"),
        ({"share": float("nan")}, "share must lie between 0 and 1, not nan"),
        ({"source": "int f( {"}, "line 1: syntax error"),
        ({"source": "class A {\n  int x\n}\n"}, "line 2: syntax error"),
        ({"source": "int f() {\n  return '\ud800'; }"}, "line 2: the code is not valid UTF-8"),
        ({"source": f"void f(int a) {{ if ({LONG}) {{ g(); }} else {{ h(); }} }}"}, TOO_DEEP),
        ({"source": ""}, "line 1: expected a Java file, or exactly one method"),
        ({"source": "int f() {}\nint g() {}"}, "line 1: expected a Java file, or exactly one method"),
        ({"source": "int f() {}", "is_file": True}, "line 1: syntax error; expected a whole Java file"),
        ({"source": "    f()", "language": "python", "is_file": True}, "line 1: unexpected indent"),
    ],
)
def test_bad_input_is_an_error_of_one_line(arguments, message):
    with pytest.raises(InputError) as error:
        rewrite(**{"source": SOURCE, "language": "java", "rules": DEFAULT_RULES, **arguments})
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


AROUND = "def range(n):\n    return [3]\n\nlimit = 4\n"


def test_shadowed_builtins_around_a_function_count():
    source = "def f(n):\n    t = 0\n    for i in range(n):\n        t += i\n    return t\n"
    alone = rewrite(source, "python", ["for-to-while"])
    inside = rewrite(source, "python", ["for-to-while"], around=AROUND)
    assert "while" in alone.text
    assert (inside.text, inside.counts) == (source, {"for-to-while": 0})
    assert [place.reason for place in inside.skipped] == ["range may be another function than the builtin"]
    assert inside.skipped[0].line == 3


def test_names_around_a_function_are_not_given_again_and_its_callers_keep_its_name():
    python = "def f(n, top):\n    return min(n, top)\n"
    assert rewrite(python, "python", names={"n": "limit"}, around=AROUND).names == {}
    assert rewrite(python, "python", names={"n": "bound"}, around=AROUND).names == {"n": "bound"}
    callers = "def g(x):\n    return f(x, top=1)\n"
    found = rewrite(python, "python", names="plain", around=callers)
    assert found.names == {"n": "p0"}
    assert {place.reason for place in found.skipped} >= {"the code around it uses the name"}
    java = "int f(int n) { return n + limit; }"
    assert rewrite(java, "java", names="plain", around="int limit = 1;").names == {"f": "f0", "n": "p0"}
    assert rewrite(java, "java", names="plain", around="int g() { return f(1); }").names == {"n": "p0"}
    assert rewrite(java, "java", names="plain", around="int f(long n) { return 1; }").names == {"n": "p0"}


@pytest.mark.parametrize(("language", "around"), [("java", "int g( {"), ("python", "def g(:\n")])
def test_code_around_that_cannot_be_parsed_is_an_error(language, around):
    source = {"java": "int f(int n) { return n; }", "python": "def f(n):\n    return n\n"}[language]
    with pytest.raises(InputError, match="line 1: the code under around cannot be parsed"):
        rewrite(source, language, around=around)


def test_an_indented_method_keeps_its_indentation_after_code_around():
    source = "    def f(self, n):\n        if n == 1:\n            return 2\n        return n\n"
    found = rewrite(
        source, "python", ["rename-parameter", "swap-equals"], names="plain", around="import os\n"
    )
    assert found.text == source.replace("n == 1", "1 == p0").replace(", n)", ", p0)").replace(
        "return n", "return p0"
    )


def test_a_type_that_hides_string_has_texts_with_side_effects():
    source = 'boolean f(String s, String t) { return ("" + s) == ("" + t); }'
    hidden = "static class String { public java.lang.String toString() { return next(); } }"
    assert rewrite(source, "java", ["swap-equals"]).counts == {"swap-equals": 1}
    assert rewrite(source, "java", ["swap-equals"], around=hidden).counts == {"swap-equals": 0}
