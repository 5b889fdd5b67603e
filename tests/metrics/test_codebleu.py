"""CodeBLEU and its parts."""

import ast
import inspect
import json
import textwrap
import time

import pytest

from simllm import metrics
from simllm.code.languages.language import LANGUAGE_OF_SUFFIX, load_language
from simllm.metrics import Example
from simllm.metrics.code import codebleu
from simllm.metrics.code.codebleu import code_bleu, keywords, syntax_match
from simllm.metrics.code.data_flow import _PythonWalker, data_flow


def parse(code, language="python"):
    return load_language(language).parse(code.encode())


def test_parts_of_the_reference_vectors(shared):
    cases = json.loads((shared / "reference" / "code-metrics-codebleu.json").read_text())["cases"]
    for case in cases:
        found = code_bleu(case["candidate"], case["reference"], case["language"])
        for part in ("ngram", "weighted_ngram", "syntax", "data_flow"):
            if not isinstance(case[part], str):  # the package differs between its runs
                assert getattr(found, part) == pytest.approx(case[part], abs=1e-6), (case["id"], part)
        example = Example(case["candidate"], case["reference"], None, case["language"])
        if "codebleu" in case:
            assert found.mean == pytest.approx(case["codebleu"], abs=1e-6)
            assert metrics.load("codebleu").score([example]).mean == pytest.approx(case["codebleu"], abs=1e-6)


def test_keywords_of_the_reference_vectors(shared):
    rules = json.loads((shared / "reference" / "code-metrics.json").read_text())["rules"]
    expected = rules["codebleu_keywords"]
    assert {name: sorted(words) for name, words in keywords().items() if name in expected} == expected
    assert keywords().keys() == set(LANGUAGE_OF_SUFFIX.values())


def test_comments_and_layout_do_not_count():
    example = Example("def f(a):\n    # note\n    return  a+1", "def f(a):\n    return a + 1", None, "python")
    assert metrics.load("codebleu").score([example]).values == [1.0]


def s_expressions(root):
    """List the s-expressions that tree-sitter prints for the root and all nodes with children."""
    found, stack = [], [root]
    while stack:
        node = stack.pop()
        if node.child_count or node == root:
            found.append(str(node))
        stack += node.children
    return found


def test_syntax_match_compares_the_printed_s_expressions():
    functions = [inspect.getsource(f) for f in vars(textwrap).values() if inspect.isfunction(f)]
    functions += [inspect.getsource(f) for f in (ast.walk, ast.iter_child_nodes, ast.get_docstring)]
    roots = [parse("\n".join(line for line in code.splitlines() if "#" not in line)) for code in functions]
    for candidate in roots:
        for reference in roots:
            printed, wanted = set(s_expressions(candidate)), s_expressions(reference)
            expected = sum(each in printed for each in wanted) / len(wanted)
            assert syntax_match(candidate, reference) == expected


def test_code_that_cannot_be_parsed_takes_linear_time():
    tree = load_language("java").parse(b"{" * 150_000 + b"a")
    begun = time.process_time()
    assert syntax_match(tree, tree) == 1
    assert time.process_time() - begun < 8  # it took 25 when field names were counted from the first child


def test_deep_nesting_is_no_error():
    deep = "x = " + "(" * 3000 + "1" + ")" * 3000
    assert code_bleu(deep, deep, "python").mean == 1
    loops = "".join(" " * level + "for a in b:\n" for level in range(40)) + " " * 40 + "c = a\n"
    assert code_bleu(loops, loops, "python").data_flow == 1


@pytest.mark.parametrize(
    ("code", "items"),
    [
        ("a = 1\nb = a\n", [("var_1", "computedFrom", ("var_0",)), ("var_0", "comesFrom", ()),
                            ("var_2", "computedFrom", ("var_1",)), ("var_1", "comesFrom", ("var_1",))]),
        ("f()\n", []),
        ("a = a\n", [("var_0", "computedFrom", ("var_0",)), ("var_0", "comesFrom", ())]),
    ],
)  # fmt: skip
def test_data_flow_of_python(code, items):
    assert data_flow(parse(code), code.encode(), "python") == items


def test_branches_unite_where_a_name_was_set():
    code = "if c:\n    a = 1\nelse:\n    a = 2\nb = a\n"
    walker = _PythonWalker(code.encode())
    walker.walk(parse(code), {}, 0)
    places = [place for place in range(len(code)) if code.startswith("a ", place)]
    assert walker.links[code.rindex("a")].sources == {"comesFrom": dict.fromkeys(places, "a")}


def test_other_languages_have_no_data_flow():
    assert data_flow(parse("int a = 1;", "java"), b"int a = 1;", "go") == []


def test_renamed_variables_keep_syntax_and_data_flow():
    code = "def f(a, b=2):\n    total = a + b\n    for x in total:\n        b += x\n    return b\n"
    other = code.replace("total", "other").replace("b", "c")
    found = code_bleu(other, code, "python")
    assert (found.syntax, found.data_flow) == (1, 1)
    assert found.weighted_ngram < 1


def test_keywords_weigh_five_times_as_much():
    words = codebleu.weighted_recall(["if", "x"], ["if", "y"], {"if"})
    assert words > codebleu.weighted_recall(["if", "y"], ["x", "y"], {"if"}) > 0
    assert codebleu.weighted_recall(["a"], ["b"], set()) == 0
