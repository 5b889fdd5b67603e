"""Filters of fetched texts, and the evaluation texts that they leave out."""

import json

import pytest

from tests.train.data.conftest import a_file, a_set, digest, fetch, packed_lines, write_catalog
from train.data.filters import EvaluationTexts, clean_corpus, key, third_of_pairs


@pytest.mark.parametrize(
    ("text", "evaluation", "inside"),
    [
        ("Returns the name !", "returns THE name.", True),
        ("returns it", "returns it", False),  # fewer than three words
        ("returns the name of the open file here", "returns the name of the open", True),
        ("returns the name of the open", "returns the name of the open file here", True),
        ("returns the name of the opening act", "returns the name of the open", False),  # not word for word
        ("returns the name of the", "returns the name of the open file", False),  # fewer than six words
        ("it returns the name of the open file", "returns the name of the open file", False),
        ("", "returns the name", False),
    ],
)
def test_equal_texts_and_prefixes_count_as_evaluation_texts(text, evaluation, inside):
    assert (text in EvaluationTexts([evaluation, "something else entirely"])) is inside


def test_a_key_keeps_letters_and_digits_of_english():
    assert key("  Gets-the ÄB2_c  ") == "gets the b2 c"


def test_corpus_drops_repeated_and_one_word_texts():
    texts = ["Adds  two ", "adds two.", "adds", "", "sets the old name", "sets it\tall"]
    rows = [{"source": str(n), "text": text} for n, text in enumerate(texts)]
    assert list(clean_corpus(rows, EvaluationTexts(["Sets the old name!"]))) == [
        {"source": "0", "text": "Adds two"},
        {"source": "5", "text": "sets it all"},
    ]


def test_kept_third_of_the_pairs_does_not_depend_on_their_order():
    rows = [{"reference": f"adds number {n}", "candidate": "sums"} for n in range(900)]
    kept = list(third_of_pairs([*rows, *rows], EvaluationTexts([])))
    assert 250 < len(kept) < 350
    assert list(third_of_pairs(reversed(rows), EvaluationTexts([]))) == kept
    without = list(third_of_pairs(rows, EvaluationTexts([kept[0]["reference"]])))
    assert without == kept[1:]


def test_a_fetched_corpus_holds_no_text_of_the_evaluation_sets(host, tmp_path):
    host.publish("owner/texts", {"a.txt": "Adds two numbers .\nSets the name .\nsets the NAME\nruns\n"})
    host.publish("owner/rated", {"h.csv": "Generation,Reference\nx,adds two numbers\n"})
    part = {"repository": "owner/texts", "paths": ["a.txt"], "reader": "lines", "language": "java"}
    rows = [{"language": "java", "text": "Sets the name ."}]
    file = a_file("corpus.jsonl", [part], digest(packed_lines(rows)), cleaning="corpus")
    rated = {"repository": "owner/rated", "paths": ["h.csv"], "reader": "commit_messages"}
    table = write_catalog(tmp_path / "sets.yaml", host, [a_set("texts", [file])], [rated])
    done = fetch("--catalog", table, "--root", tmp_path / "data", "--host", host.folder)
    assert done.returncode == 0, done.stderr
    assert [json.loads(line) for line in (tmp_path / "data/corpus.jsonl").read_text().splitlines()] == rows
