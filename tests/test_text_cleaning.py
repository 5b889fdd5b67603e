import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simllm.metric import default_model
from simllm.text_cleaning import LONGEST, clean

# Strings that the cleaning rules look for; random texts are made of them.
_PIECES = ["/**", "*/", "//", "#", '"""', "'''", "\n", "\n\n", " ", "@return", ":param x:", " ' s", "don't"]
_PIECES += [
    "1",
    ",",
    "000",
    ".",
    " . ",
    "a",
    "B",
    "...",
    "---",
    "*",
    "-",
    "\u2260",
    "\u0338",
    "\ud800",
    "\x00",
]
_TEXTS = st.one_of(st.text(), st.lists(st.sampled_from(_PIECES), max_size=15).map("".join))


@pytest.mark.parametrize(
    ("raw", "cleaned"),
    [
        ("/** Gets the name.\n *\n * More of it.\n */", "gets the name ."),
        ("/**\n * Gets the\n * name.\n * @return the name\n */", "gets the name ."),
        ("/**\n\n * Gets it. */", "gets it ."),
        ("// Adds two\n// numbers", "adds two numbers"),
        ("# Adds two\n# numbers", "adds two numbers"),
        ('"""Adds two numbers.\n\n    Args:\n        a: one\n    """', "adds two numbers ."),
        ("Adds numbers.\n:param a: one", "adds numbers ."),
        ("adds  \t two\r\nnumbers ", "adds two numbers"),
        ("foo ( bar ) , baz .", "foo ( bar ) , baz ."),
        ("foo(bar), baz.", "foo ( bar ) , baz ."),
        ("version 1 . 5 and 1.5", "version 1.5 and 1.5"),
        ("1,000,000 rows", "1000000 rows"),
        ("\u0661 is not ascii, 3\u066b5 is", "is not ascii , 3.5 is"),
        ("don't, don ' t, don\u2019t", "don't , don't , don't"),
        ("caf\u00e9 na\u00efve stra\u00dfe \u0141\u00f3d\u017a", "cafe naive strasse lodz"),
        ("\u201cx\u201d \u2013 y\u2026", '" x " - y . . .'),
        ("a \u2260 b, a \u2264 b", "a ! = b , a < = b"),
        ("a\x00b\x1bc\u4e2d\U0001f600d", "a b c d"),
        ("=======\nTitle", "= title"),
        ("", ""),
        ("\ud800", ""),
    ],
)
def test_cleaning(raw, cleaned):
    assert clean(raw) == cleaned


@settings(max_examples=500)
@given(_TEXTS)
def test_clean_text_is_lower_case_ascii_and_stays_unchanged(text):
    cleaned = clean(text)
    assert clean(cleaned) == cleaned
    assert all(" " <= character <= "~" for character in cleaned)
    assert cleaned == cleaned.lower() == " ".join(cleaned.split())


# Strings whose repetition takes the cleaning rules the most time.
@pytest.mark.parametrize("piece", ["a", "é", "\ufdfa", "\n", "1,000", "*", "/*", "*/ ", "**/", " '", '"""'])
@pytest.mark.parametrize("around", ["{}", "a {} a"])
def test_line_of_a_million_characters_is_truncated(piece, around):
    text = around.format(piece * (1_000_000 // len(piece)))
    assert clean(text) == clean(text[:LONGEST])  # the untruncated line would take hours


def test_tokenizer_files_contain_the_same_cleaning_rules(tokenizer, tmp_path):
    """A tokenizer file stores cleaning rules; those of the default model must equal the current ones."""
    tokenizer.backend.save(str(tmp_path / "tokenizer.json"))
    fresh = json.loads((tmp_path / "tokenizer.json").read_text())["normalizer"]
    shipped = json.loads((default_model() / "tokenizer.json").read_text())["normalizer"]
    assert len(fresh["normalizers"]) > 20
    assert shipped == fresh
