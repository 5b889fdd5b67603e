"""The command that writes the definitions and examples of WordNet as texts for distillation."""

import pytest

from simllm import InputError
from train.distill import wordnet_glosses

LICENCE = "  1 This software and database is being provided to you\n"
LINE = (
    "00001740 03 {part} 02 {word} 0 other 0 000 | {gloss}  \n"  # offset, file, kind, words, pointers, gloss
)


@pytest.fixture
def wordnet(tmp_path):
    folder = tmp_path / "wordnet"
    folder.mkdir()
    rows = {
        "noun": ("linked_list", 'a list of nodes; "the list is empty"; "lists; of lists"'),
        "verb": ("sort", "put in order"),
        "adj": ("empty(a)", 'holding nothing; "an empty box"; (of words) without meaning'),
        "adv": ("fast", '"run fast"'),
    }
    for part, (word, gloss) in rows.items():
        (folder / f"data.{part}").write_text(LICENCE + LINE.format(part=part[0], word=word, gloss=gloss))
    return folder


def test_glosses_are_definitions_and_examples(call, wordnet, tmp_path):
    done = call(wordnet_glosses, wordnet, tmp_path / "glosses.txt")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "glosses.txt").read_text().splitlines() == [
        "a list of nodes",
        "linked list : a list of nodes",
        "the list is empty",
        "lists; of lists",
        "put in order",
        "sort : put in order",
        "holding nothing; (of words) without meaning",
        "empty : holding nothing; (of words) without meaning",
        "an empty box",
        "run fast",
    ]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "data.adj").unlink(), r"data\.adj: cannot be read|data\.adj: no such file"),
        (lambda f: (f / "data.verb").write_text("nonsense\n"), r"data\.verb, line 1: expected a synset"),
    ],
)
def test_damaged_wordnet_is_an_error(call, wordnet, tmp_path, damage, message):
    damage(wordnet)
    done = call(wordnet_glosses, wordnet, tmp_path / "glosses.txt")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    with pytest.raises(InputError, match=message):
        list(wordnet_glosses.read_glosses(wordnet))
    assert not (tmp_path / "glosses.txt").exists()


def test_existing_file_is_replaced_only_with_overwrite(call, wordnet, tmp_path):
    output = tmp_path / "glosses.txt"
    output.write_text("mine\n")
    assert call(wordnet_glosses, wordnet, output).returncode == 2
    assert output.read_text() == "mine\n"
    assert call(wordnet_glosses, wordnet, output, "--overwrite").returncode == 0
    assert call(wordnet_glosses, wordnet, wordnet / "data.noun", "--overwrite").returncode == 2
    assert (wordnet / "data.noun").read_text().startswith(LICENCE)
    assert call(wordnet_glosses, tmp_path / "nowhere", output).returncode == 2
