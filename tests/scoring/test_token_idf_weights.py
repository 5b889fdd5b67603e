"""Weights of tokens by document frequency, against those of scikit-learn."""

import json
import math

import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from simllm.scoring.frequencies import Frequencies
from simllm.scoring.tokens import Tokenized
from tests.command import run


def test_idf_weights_equal_scikit_learn(tokenizer):
    texts = ["adds two numbers two", "adds a number", "removes it"]
    inputs = [[tuple(ids)] for ids in tokenizer.encode(texts)]
    weights = Frequencies.count([Tokenized(inputs[:2]), Tokenized(inputs[2:])], tokenizer).weights(tokenizer)
    theirs = TfidfVectorizer(analyzer=lambda ids: [str(i) for i in ids], norm=None)
    theirs.fit([ids[1:-1] for (ids,) in inputs])
    for token, place in theirs.vocabulary_.items():
        assert weights[int(token)] == pytest.approx(theirs.idf_[place])
    assert weights[4] == pytest.approx(math.log(4) + 1)  # a token that no document contains


def test_saved_frequencies_on_the_command_line(model_folder, comments, tmp_path):
    (tmp_path / "r.txt").write_text("".join(" ".join(c.split()) + "\n" for c in comments[:50]))
    table, model = tmp_path / "table.json", ("--model", model_folder)
    assert run("frequencies", tmp_path / "r.txt", "-o", table, *model).returncode == 0
    assert json.loads(table.read_text())["documents"] == 50
    files = ("-c", tmp_path / "r.txt", "-r", tmp_path / "r.txt", *model)
    by_table = run("score", *files, "--similarity", "f1", "--frequencies", table)
    assert by_table.stdout == run("score", *files, "--similarity", "f1").stdout
    assert by_table.stdout
    table.write_text('{"documents": 2, "of": {"no such token": 1}}')
    assert (
        "'no such token' is not in the model's"
        in run("score", "a", "b", "--similarity", "f1", "--frequencies", table, *model).stderr
    )
