"""Pairs of comments that share many words, and similarity by shared tokens."""

import json

import numpy as np
import pytest

from train.contrastive import lexical_neighbours
from train.contrastive.lexical_neighbours import LexicalTeacher, neighbour_pairs

TEXTS = ["open the file", "close the file", "open the socket", "sort a list", "sort the list", "frobnicate"]


def test_paired_texts_share_words():
    pairs = list(neighbour_pairs(TEXTS, 100))
    assert [first for first, _ in pairs] != TEXTS
    assert {first for first, _ in pairs} == set(TEXTS) - {"frobnicate"}
    assert all(first != second and set(first.split()) & set(second.split()) for first, second in pairs)
    assert pairs == list(neighbour_pairs(TEXTS, 100))


def test_only_the_ten_nearest_texts_are_paired():
    near = [f"parses the header of message {number}" for number in range(11)]
    far = [f"the file {number}" for number in range(40)]
    assert {second for first, second in neighbour_pairs([*near, *far], 51) if first in near} <= set(near)


@pytest.mark.parametrize("count", [0, 3])
def test_number_of_pairs_is_limited(count):
    assert len(list(neighbour_pairs(TEXTS[:5], count))) == count


def test_command_cleans_texts_and_keeps_an_existing_file(call, tmp_path):
    corpus, out = tmp_path / "train.txt", tmp_path / "pairs.jsonl"
    corpus.write_text("Opens the file.\n\n/**/\nOpens a file!\nopens the file .\n", encoding="utf-8")
    done = call(lexical_neighbours, corpus, out)
    assert (done.returncode, done.stderr) == (0, f"2 pairs in {out}\n")
    rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert {tuple(sorted(row.values())) for row in rows} == {("opens a file !", "opens the file .")}
    assert call(lexical_neighbours, corpus, out).returncode == 2


@pytest.mark.parametrize(
    ("lines", "options", "message"),
    [
        ("\nadds it\n\nAdds it\n", (), "expected two or more different texts"),
        (".\n!\nadds it\n", (), "no two texts share a word"),
        ("adds it\nsets it\n", ("--pairs", "-1"), "--pairs -1: expected a whole number from 0"),
    ],
)
def test_bad_input_is_one_line(call, lines, options, message, tmp_path):
    (tmp_path / "train.txt").write_text(lines)
    done = call(lexical_neighbours, tmp_path / "train.txt", tmp_path / "pairs.jsonl", *options)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


IDS = [[0, 5, 6, 2], [0, 5, 7, 7, 2], [0, 8, 2]]


def test_cosines_by_hand():
    """The cosines weight tokens by idf: token 5 is in two of three texts, the tokens 6, 7 and 8 in one.

    The idf of token 5 is log(4/3) + .001, and that of the others is log(4/2) + .001.
    """
    common, rare = np.log(4 / 3) + 1e-3, np.log(2) + 1e-3
    expected = np.eye(3)
    expected[0, 1] = expected[1, 0] = common / (common + rare)
    assert LexicalTeacher(IDS, 10).cosines(IDS) == pytest.approx(expected, abs=1e-6)
    assert LexicalTeacher(IDS, 10).cosines([[0, 2], [0, 5, 2]])[0, 1] == 0  # a text without words
