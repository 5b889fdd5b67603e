"""New names: synonyms in the style of the old name, names without meaning, and names from a user's file."""

from itertools import islice

import pytest

from simllm import InputError
from simllm.perturb.code import rewrite
from simllm.perturb.code.new_names import namer_of, plain, read_names, split_words, synonyms


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("maxWidth", ["max", "Width"]),
        ("read_all", ["read", "all"]),
        ("getHTTPData2", ["get", "HTTP", "Data", "2"]),
        ("MAX_VALUE", ["MAX", "VALUE"]),
        ("größeX", ["größe", "X"]),
    ],
)
def test_names_are_split_into_words(name, words):
    assert split_words(name) == words


@pytest.mark.parametrize(
    ("name", "proposal"),
    [("maxWidth", "maximumWidth"), ("MAX_WIDTH", "MAXIMUM_WIDTH"), ("width2", "breadth2"), ("i", "index")],
)
def test_synonyms_keep_the_style_of_a_name(name, proposal):
    assert proposal in list(synonyms(name, "variable"))


def test_plain_names_tell_the_kind():
    assert list(islice(plain("total", "variable"), 2)) == ["v0", "v1"]
    assert next(plain("total", "function")) == "f0"


def test_names_are_read_from_a_file(tmp_path):
    file = tmp_path / "names.tsv"
    file.write_text("total\tsum\n\ncount\ttally\n")
    assert read_names(file) == {"total": "sum", "count": "tally"}
    for text, message in [("a b\n", ":1: expected an old"), ("a\tb\na\tc\n", ":2: a has a new name already")]:
        file.write_text(text)
        with pytest.raises(InputError, match=message):
            read_names(file)
    with pytest.raises(InputError, match="unknown names 'foo'"):
        namer_of("foo")


SOURCE = "int f(int a, int b) {\n    // a and b\n    int total = a + b;\n    return total;\n}\n"


@pytest.mark.parametrize("taken", ["total", "and", "int", "f", "not a name", "1x", "", "return"])
def test_a_name_that_occurs_or_is_none_is_not_given(taken):
    found = rewrite(SOURCE, "java", ["rename-parameter"], {"a": taken})
    assert (found.text, found.names) == (SOURCE, {})
    assert [(place.line, place.reason) for place in found.skipped] == [
        (1, "there is no new name for a"),
        (1, "there is no new name for b"),
    ]
