"""Reading of items to repair."""

import re

import pytest

from simllm.errors import InputError
from simllm.repair.items import read_items
from tests.repair.programs import ITEM


def test_items_of_the_reference_vectors(vectors, write_items):
    found = read_items(write_items(*vectors("items")["items"]))
    assert [item.id for item in found] == [item["id"] for item in vectors("items")["items"]]
    assert found[0].limits.time == 1
    assert found[0].limits.memory == 64


SUMMARY = {"id": "a", "code": "x = 1", "reference": "sets x"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"id": None}, "id must be of type str, not None"),
        ({"language": "cobol"}, "language 'cobol': expected one of cpp, python, java"),
        ({"language": ...}, "missing key language"),
        ({"description": ...}, "missing key description"),
        ({"code": ...}, "missing key code"),
        ({"tests": []}, "expected at least one test under tests"),
        ({"tests": [{"input": "1"}]}, "missing key tests[0].output"),
        ({"tests": "1"}, "tests must be a list, not '1'"),
        ({"hint": "x"}, "unknown key hint"),
        ({"time": 0}, "limit time: expected a positive number, not 0.0"),
        ({"memory": "64"}, "memory must be of type int, not '64'"),
        ({"files": {"input": "../a", "output": "b"}}, "files: '../a': expected a plain file name"),
        ({"files": {"input": "main.py", "output": "b"}}, "files: main.py is a file of the program itself"),
        (
            {"files": {"input": "Math.pyc", "output": "b"}},
            "files: Math.pyc is a file of the program itself",
        ),
        (
            {"files": {"input": "b", "output": "json.py"}},
            "files: json.py is a file of the program itself",
        ),
        ({"files": {"input": "b", "output": "B"}}, "files: 'B': the output file must not be the input file"),
        ({"memory": 10**10}, "limit memory: expected at most 1000000000"),
        ({"reference": "x"}, "a reference is of a summary"),
    ],
)
def test_wrong_items_name_file_and_line(write_items, change, message):
    row = {name: value for name, value in (ITEM | change).items() if value is not ...}
    file = write_items(ITEM | {"id": "first"}, row)
    with pytest.raises(InputError, match=re.escape(f"{file}, line 2: {message}")):
        read_items(file)


def test_wrong_summaries(write_items):
    assert read_items(write_items(SUMMARY), are_summaries=True)[0].reference == "sets x"
    with pytest.raises(InputError, match="line 1: missing key reference"):
        read_items(write_items(SUMMARY | {"reference": None}), are_summaries=True)
    with pytest.raises(InputError, match="line 1: a summary is judged by a metric and has no tests"):
        read_items(write_items(SUMMARY | {"tests": ITEM["tests"]}), are_summaries=True)


def test_no_items_and_equal_ids(write_items):
    with pytest.raises(InputError, match="empty; expected a JSON object per line"):
        read_items(write_items())
    with pytest.raises(InputError, match="line 2: id 'next' for the second time"):
        read_items(write_items(ITEM, ITEM))
