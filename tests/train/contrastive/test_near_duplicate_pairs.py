"""Search for near duplicates: it finds texts of the same meaning, but no similar texts of another meaning."""

import json

import pytest

from simllm.perturb.summaries import lexicon
from simllm.text_cleaning import clean
from train.contrastive import near_duplicate_pairs
from train.contrastive.near_duplicate_pairs import extract_content_words, find_pairs
from train.corpus.deduplicate import words

LEXICON = lexicon.load()


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Returns the name of the user.", "return user name"),
        ("Name of the user in a list", "the user name in the list"),
        ("Gets the given key from the cache", "get key from cache ."),
        ("Frobnicates a widget in place", "Frobnicate the widget in place"),
        ("Checks if the file exists", "Check if a file exists."),
    ],
)
def test_near_duplicates_are_found(a, b):
    assert extract_content_words(clean(a), LEXICON) == extract_content_words(clean(b), LEXICON)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Opens the given file", "Closes the given file"),
        ("Returns all the keys", "Removes all the keys"),
        ("Copies the list to the array", "Copies the array to the list"),
        ("Returns the index of the key", "Returns the key of the index"),
        ("Returns the key at the index", "Returns the key index"),
        ("Reads the first 2 bytes", "Reads the first 3 bytes"),
        ("Checks if it is empty", "Checks if it is not empty"),
        ("Returns the number of users", "Returns the user number"),
        ("Returns the key of the user", "Returns the keys of the user"),
        ("Filters the list of matches", "Filters the lists of matches"),
        ("Keys of the map", "Key of the map"),
        ("Gets the first index of the element", "Gets the index of the first element"),
        ("Modify a member of an existing pool", "Modify an existing member of a pool"),
        ("Gets the size of of the root disk", "Gets the size of of the data disk"),
        ("Checks if value > 0", "Checks if the value < 0"),
        ("Adds x + y to it", "Adds x - y to it"),
        ("Assigns a to b", "Assigns to b"),
        ("Opens the http connection", "Opens the https connection"),
        ("Called before the save", "Called after the save"),
    ],
)
def test_similar_texts_with_other_meaning_are_distinguished(a, b):
    assert extract_content_words(clean(a), LEXICON) != extract_content_words(clean(b), LEXICON)


def test_each_text_is_paired_with_the_previous_duplicate():
    texts = ["adds a key to it", "adds key to it", "sees it", "see it", "add the key to it", "adds key to it"]
    found = list(find_pairs(texts, LEXICON))
    assert [(row["a"], row["b"]) for row in found] == [
        ("adds a key to it", "adds key to it"),
        ("adds key to it", "add the key to it"),
    ]
    assert {row["group"] for row in found} == {"add key to it"}


def test_the_command(call, comments, tmp_path):
    texts = sorted(set(filter(None, map(clean, comments))))
    source, out = tmp_path / "train.txt", tmp_path / "out.jsonl"
    source.write_text("".join(text + "\n" for text in texts))
    done = call(near_duplicate_pairs, source, out)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert done.stderr == f"{len(rows):,} pairs in {out}\n"
    assert len(rows) > 2
    for row in rows:
        assert words(row["a"]) != words(row["b"])
        assert {row["a"], row["b"]} <= set(texts)
        assert " ".join(extract_content_words(row["b"], LEXICON)) == row["group"]
    for overwrite in ([], ["--overwrite"]):
        done = call(near_duplicate_pairs, source, source, *overwrite)
        assert done.returncode == 2
        assert "would overwrite what is read" in done.stderr
