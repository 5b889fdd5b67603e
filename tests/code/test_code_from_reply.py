"""Extraction of code from a model's reply."""

import json

import pytest

from simllm.code.code_from_reply import code_of_reply


def test_replies_of_the_reference_vectors(shared):
    cases = json.loads((shared / "reference" / "code-metrics.json").read_text())["extraction"]
    for case in cases:
        assert code_of_reply(case["reply"], case["language"]) == case["code"], case["name"]


def test_programs_of_the_reference_vectors(shared):
    cases = json.loads((shared / "reference" / "repair_extract.json").read_text())["cases"]
    assert len(cases) == 15
    for case in cases:
        expected = case["code"] and case["code"].removesuffix("\n")
        for is_program in (True, False):
            found = code_of_reply(case["reply"], case["language"], is_program)
            assert (found and found.removesuffix("\n")) == expected, case["name"]


def test_a_program_is_not_searched_for_in_text():
    reply = "Here is the function.\n\ndef half(x):\n    return x // 2\n\nIt halves."
    assert code_of_reply(reply, "python") == "def half(x):\n    return x // 2"
    assert code_of_reply(reply, "python", is_program=True) is None
    whole = "def half(x):\n    return x // 2\n"
    assert code_of_reply(whole, "python", is_program=True) == whole


@pytest.mark.parametrize(
    ("reply", "language", "code"),
    [
        ("```js\nf()\n```", "javascript", "f()"),
        ("```json\n{}\n```", "javascript", None),
        ("```diff\n-a\n+b\n```\n```\nf()\n```", "java", "f()"),
        ("Use:\n\n@cached\ndef f():\n    return 1\n", "python", "@cached\ndef f():\n    return 1"),
        ("class A:\n  a\n\nSo:\n\ndef g():\n  b\n?", "python", "class A:\n  a\n\nSo:\n\ndef g():\n  b"),
    ],
)  # fmt: skip
def test_fences_and_definitions(reply, language, code):
    assert code_of_reply(reply, language) == code


def test_text_with_code_in_it_gives_its_longest_run_of_lines_that_parses():
    reply = "It's (simple:\n\ndef half(x):\n    y = x // 2\n    return y\n\nIsn't it?"
    assert code_of_reply(reply, "python") == "def half(x):\n    y = x // 2\n    return y"


@pytest.mark.parametrize("reply", ["", " \n", "I cannot do that.", "word " * 5000, "`" * 10_000])
def test_reply_without_code(reply):
    assert code_of_reply(reply, "java") is None


@pytest.mark.slow
def test_search_for_runs_that_parse_ends():
    """Lines with open brackets are slow to parse; the search gives up before all runs of lines are parsed."""
    reply = "\n".join(f"x = ({number} " * 30 for number in range(199))
    assert code_of_reply(reply, "cpp") is None


@pytest.mark.parametrize("tag", ["think", "answer", "details"])
def test_a_fence_after_a_tag_is_found(tag):
    code = "def f(a):\n    x = 1\n\n    return x"
    assert code_of_reply(f"<{tag}>\nhm\n</{tag}>\n```python\n{code}\n```\nDone.\n", "python") == code
    assert code_of_reply(f"<{tag}>\n```python\n{code}\n```\n</{tag}>\n", "python") == code


@pytest.mark.parametrize(
    "label", ["python3.11", "{.python}", "python:foo.py", "python,editable", "Py title=x"]
)
def test_labels_with_versions_and_attributes(label):
    assert code_of_reply(f"```{label}\nx=1\n```", "python") == "x=1"
