"""Pairs of words and definitions from a small handwritten WordNet in the format of wndb(5WN)."""

import json

import pytest

from train.contrastive import wordnet_pairs

LICENCE = "  1 This software and database is being provided to you, the LICENSEE\n"
FILES = {
    "verb": [
        '00000100 30 v 02 varnish 0 colour_in 0 001 ! 00000200 v 0101 00 | cover; "varnish the wall"',
        '00000200 30 v 01 rinse 0 001 ! 00000100 v 0101 00 | take the dye off; "rinse the wall"',
        '00000300 36 v 02 encrypt 0 encipher 0 001 ! 00000400 v 0101 00 | make secret; "encrypt the file"',
        "00000400 36 v 01 decrypt 0 000 00 | make readable",
        "00000500 36 v 01 unheard 0 000 00 | of which the corpus says nothing",
    ],
    "noun": [
        "00000600 06 n 01 wall 0 001 @ 00000700 n 0000 | an upright structure",
        "00000700 05 n 01 cat 0 000 | an animal, which is left out",
    ],
    "adj": ['00000800 00 s 02 swift(p) 0 fleet 0 000 | moving fast; "a swift file"; "a fleet file"'],
    "adv": [],
}
KNOWN = "varnish rinse encrypt encipher decrypt wall cat swift fleet colour in".split()


@pytest.fixture
def folder(tmp_path):
    for part, synsets in FILES.items():
        (tmp_path / f"data.{part}").write_text(LICENCE + "".join(line + "  \n" for line in synsets))
    (tmp_path / "corpus.txt").write_text((" ".join([*KNOWN, "rare"]) + "\n") * 9 + " ".join(KNOWN) + "\n")
    return tmp_path


def rows_of(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_synsets_are_read(folder):
    found = wordnet_pairs.read_useful_synsets(folder)
    assert set(found) == {
        "v00000100",
        "v00000200",
        "v00000300",
        "v00000400",
        "v00000500",
        "n00000600",
        "a00000800",
    }
    varnish = found["v00000100"]
    assert varnish.words == ["varnish", "colour in"]
    assert varnish.definition == "cover"
    assert varnish.examples == ["varnish the wall"]
    assert varnish.antonyms == {0: ("v00000200", 0)}
    assert found["a00000800"].words == ["swift", "fleet"]


def test_words_need_ten_occurrences(folder):
    assert wordnet_pairs.find_frequent_words(folder / "corpus.txt") == set(KNOWN)


def test_command_writes_definitions_and_examples_with_opposites(call, folder):
    out = folder / "pairs.jsonl"
    done = call(wordnet_pairs, folder, folder / "corpus.txt", out, "--hold-out-contrast")
    assert done.returncode == 0, done.stderr
    assert "11 pairs, 3 with an opposite" in done.stderr
    rows = rows_of(out)
    texts = [(row["a"], row["b"], row.get("c")) for row in rows]
    assert texts == [
        ("varnish", "cover", "rinse"),
        ("varnish the wall", "colour in the wall", "rinse the wall"),
        ("colour in", "cover", None),
        ("rinse", "take the dye off", "varnish"),
        ("encrypt", "make secret", None),  # without `enciphers`, which is held out for testing
        ("decrypt", "make readable", None),
        ("wall", "an upright structure", None),
        ("swift", "moving fast", None),
        ("a swift file", "a fleet file", None),
        ("fleet", "moving fast", None),
        ("a fleet file", "a swift file", None),
    ]
    groups = [row["group"] for row in rows]
    assert groups[0] == groups[2] == "v00000100" != groups[1]


def test_nothing_is_held_out_by_default(call, folder):
    out = folder / "pairs.jsonl"
    assert call(wordnet_pairs, folder, folder / "corpus.txt", out).returncode == 0
    secret = [(row["a"], row.get("c")) for row in rows_of(out) if row["b"] == "make secret"]
    assert secret == [("encrypt", "decrypt"), ("encipher", None)]


@pytest.mark.parametrize("line", ["00000900 30 v 0x", "not a synset", "00000900 30 v 01 go 0 003 ! 1 | go"])
def test_bad_line_is_an_error_and_nothing_is_written(call, folder, line):
    (folder / "data.adv").write_text(LICENCE + line + "\n")
    done = call(wordnet_pairs, folder, folder / "corpus.txt", folder / "pairs.jsonl")
    assert done.returncode == 2
    assert done.stderr == f"error: {folder}/data.adv, line 2: expected a synset of WordNet 3\n"
    assert not (folder / "pairs.jsonl").exists()


def test_missing_folder_is_an_error(call, folder):
    done = call(wordnet_pairs, folder / "none", folder / "corpus.txt", folder / "pairs.jsonl")
    assert done.returncode == 2
    assert done.stderr == f"error: {folder}/none/data.verb: cannot be read (No such file or directory)\n"
