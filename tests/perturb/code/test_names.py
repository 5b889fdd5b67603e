"""New names: synonyms in the style of the old name, names without meaning, and names from a user's file."""

from itertools import islice

import pytest

from simllm import InputError
from simllm.perturb.code import rewrite
from simllm.perturb.code.names import namer_of, plain, read_names, split_words, synonyms


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
    for text, message in [
        ("a b\n", ":1: expected an old"),
        ("a\tb\na\tc\n", ":2: a has a new name already"),
        ("\na\tb\nc\tb\n", ":3: b is the new name of line 2 already"),
        ("a\tb\nc\tfor\n", ":2: for cannot be a new name for c"),
        ("a\t__b\n", ":1: __b cannot be a new name for a"),
        ("a\ta\n", ":1: a cannot be a new name for a"),
        ("a\tb\x1b\n", ":1: expected an old"),
        ("a\t\\u0062\n", ":1: expected an old"),
    ]:
        file.write_text(text)
        with pytest.raises(InputError, match=message):
            read_names(file)
    with pytest.raises(InputError, match="unknown names 'foo'"):
        namer_of("foo")


SOURCE = "int f(int a, int b) {\n    // a and b\n    int total = a + b;\n    return total;\n}\n"


@pytest.mark.parametrize(
    ("taken", "reason"),
    [
        ("total", ": 'total' is taken: the word occurs in the code"),
        ("and", ": 'and' is taken: the word occurs in the code"),
        ("int", ": 'int' is reserved in Java"),
        ("f", ": 'f' is taken: the word occurs in the code"),
        ("not a name", ": 'not a name' cannot be a name in both languages"),
        ("1x", ": '1x' cannot be a name in both languages"),
        ("", ""),
        ("return", ": 'return' is reserved in Java"),
    ],
)
def test_a_name_that_occurs_or_is_none_is_not_given(taken, reason):
    found = rewrite(SOURCE, "java", ["rename-parameter"], {"a": taken})
    assert (found.text, found.names) == (SOURCE, {})
    assert [(place.line, place.reason) for place in found.skipped] == [
        (1, f"there is no new name for a{reason}"),
        (1, "there is no new name for b"),
    ]


def test_a_name_that_another_name_got_is_not_given_again():
    found = rewrite(SOURCE, "java", ["rename-parameter"], {"a": "x", "b": "x"})
    assert found.names == {"a": "x"}
    assert [place.reason for place in found.skipped] == [
        "there is no new name for b: 'x' is taken: it is the new name of a"
    ]
