"""Normal forms of code: what they leave out, and what they keep."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simllm.code.normal_form import normal_forms
from simllm.errors import InputError

# For each language, two texts with equal normal forms, and a third with another one.
TRIPLES = {
    "python": (
        "import os\ndef f(a):\n    'Doc.'\n    # note\n    return a+1\n",
        "def f( a ):\n  return (a + 1)\n",
        "def f(a):\n    return a + 2\n",
    ),
    "java": (
        "import a.B;\n/** Doc. */\nint f(int a) { // note\n  return a+1; }",
        "int f(int a)\n{\n\treturn a + 1;\n}\n",
        "int f(int a) { return a + 2; }",
    ),
    "javascript": (
        "import x from 'x';\nfunction f(a) { /* note */ return `a\n${a}` }",
        "function f(a) {\n  return `a\n${a}`\n}",
        "function f(a) { return `a${a}` }",
    ),
    "typescript": (
        "import { x } from 'x';\nconst f = (a: number): number => { return a };",
        "// doc\nconst f = (a : number) : number => {\n  return a\n} ;",
        "const f = (a: string): number => { return a };",
    ),
    "go": (
        'package p\n\nimport "os"\n\n// F adds.\nfunc F(a int) int {\n\n\treturn a+1 // note\n}',
        "package p\nfunc F(a int) int {\nreturn a + 1\n}\n",
        "package p\nfunc F(a int) int {\nreturn a - 1\n}\n",
    ),
    "ruby": (
        "require 'x'\nrequire_relative 'y'\n# Doc.\ndef f(a)\n  a+1 # note\nend",
        "def f(a)\na + 1\nend\n",
        "def f(a)\na - 1\nend\n",
    ),
    "php": (
        "<?php\nuse A\\B;\n/** Doc. */\nfunction f($a) { return $a . 'x'; } // note",
        "function f( $a )\n{\n    return $a.'x';\n}\n",
        "function f($a) { return $a . 'y'; }",
    ),
    "cpp": (
        "#include <vector>\n// doc\nint f(int a) { return a+1; /* note */ }",
        "int f(int a)\n{\n  return a + 1;\n}",
        "int f(int a) { return a - 1; }",
    ),
}


@pytest.mark.parametrize("language", TRIPLES)
def test_comments_imports_and_layout_are_left_out(language):
    first, second, third = normal_forms(TRIPLES[language], language)
    assert first == second != third
    assert first


def test_normal_forms_of_the_reference_vectors(shared):
    vectors = json.loads((shared / "reference" / "code-metrics.json").read_text())
    for item in vectors["items"]:
        for name, row in item["candidates"].items():
            texts = [item["source"], item["reference"], row["candidate"]]
            found = normal_forms(texts, item["language"])[2]
            assert found == row["expected"]["normal_form"], (item["id"], name)


def test_lines_of_strings_stay_together_and_crlf_counts_as_a_line_end():
    ((line,),) = normal_forms(["x := `a\r\n b`"], "go")
    assert line == "x := `a␊ b`"
    assert normal_forms(["int a;\r\nint b;"], "java") == normal_forms(["int a;\nint b;"], "java")
    separator = 'x = "a\u2028b"'
    assert normal_forms([separator, "x = (1"], "python")[0] == [separator]


@pytest.mark.parametrize(
    ("language", "first", "second"),
    [
        ("go", "x := `a\nb`", "x := `a b`"),
        ("javascript", "x = `a\n  \nb`", "x = `a\n\nb`"),
        ("python", 'x = """a\n  \nb"""', 'x = """a\n\nb"""'),
    ],
)
def test_strings_of_other_values_have_other_normal_forms(language, first, second):
    forms = normal_forms([first, second], language)
    assert forms[0] != forms[1]


def test_all_texts_get_the_same_kind():
    """Python texts are normalized by `ast` only if all of them parse; otherwise all are split into tokens."""
    assert normal_forms(["f(1)", "g(2)"], "python") == [["f(1)"], ["g(2)"]]
    assert normal_forms(["f(1)", "print 2"], "python") == [["f ( 1 )"], ["print 2"]]


def test_a_python_body_may_become_empty():
    assert normal_forms(["def f():\n    'Only a docstring.'\n", "def f():\n    pass\n"], "python") == [
        ["def f():"],
        ["def f():", "    pass"],
    ]


def test_a_string_statement_in_javascript_is_kept():
    assert normal_forms(["'use strict'\nf()"], "javascript") == [["'use strict'", "f ( )"]]


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment", "import os"])
def test_text_without_code_has_no_lines(text):
    assert normal_forms([text, "x ="], "python")[0] == normal_forms([text], "python")[0] == []


def test_deep_nesting_is_no_error():
    (lines,) = normal_forms(["(" * 5000 + ")" * 5000], "python")
    assert "".join(lines).count("(") == 5000


def test_unsupported_language_is_an_error():
    with pytest.raises(InputError, match="language 'cobol': expected one of cpp, go, java, javascript, php"):
        normal_forms(["x"], "cobol")


@given(
    st.lists(st.sampled_from(["a = f(b);", "if (a) { b(); }", "return a;", 'x = "b c";']), min_size=1),
    st.data(),
)
def test_layout_never_changes_the_normal_form(statements, data):
    space = st.sampled_from([" ", "\n", "\n\n\t", " /* note */ ", "\n// note\n"])
    joined = "".join(data.draw(space) + statement.replace(" ", data.draw(space), 1) if '"' not in statement
                     else data.draw(space) + statement for statement in statements)  # fmt: skip
    plain = "void f() { " + " ".join(statements) + " }"
    first, second = normal_forms([plain, "void f()\n{" + joined + "\n}"], "java")
    assert first == second
