"""The rewrites of Java functions equal reference results."""

import json
import re

import pytest

from simllm.perturb.code import rewrite
from tests.perturb.code.java.programs import outcomes


@pytest.fixture(scope="module")
def cases(shared):
    return json.loads((shared / "reference" / "metamorphic-java.json").read_text())["cases"]


def variant(case):
    return rewrite(case["source"], "java", case["rules"], case.get("names") or {})


def test_rewrites_are_made_where_they_are_safe(cases):
    for case in cases:
        text = variant(case).text
        if case["must"] != "either":
            assert (text != case["source"]) == (case["must"] == "apply"), case["id"]
        if case.get("shape"):
            assert squeezed(text) == squeezed(case["upstream"]["output"]), case["id"]


def squeezed(text):
    return re.sub(r"\s", "", text)


@pytest.mark.slow
def test_variants_compile_and_behave_like_the_originals(cases, tmp_path):
    functions = {}
    for case in cases:
        found = variant(case)
        name = case["id"].replace("-", "_")
        functions[name] = case | {
            "source": found.text,
            "entry": found.names.get(case["entry"], case["entry"]),
        }
    found = outcomes(functions, tmp_path)
    for case in cases:
        assert found[case["id"].replace("-", "_")] == case["outcomes"], case["id"]
