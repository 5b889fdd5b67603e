"""Tokens of texts: blocks of pairs, and weights by document frequency."""

import json
import math
import warnings

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from simllm import SimLLM
from simllm.scoring import embedding
from simllm.scoring.embedding import Tokenized
from simllm.scoring.token_matching import Frequencies
from tests.command import run


def test_blocks_are_bounded_and_contain_every_pair_once(monkeypatch):
    monkeypatch.setattr(embedding, "_TOKENS", 50)
    draw = np.random.default_rng(0)
    candidates, references = ([[(0,) * int(n)] for n in draw.integers(2, 30, 40)] for _ in range(2))
    references[3] = [(0,) * 64] * 3  # windows that exceed the size of a block
    parts = list(embedding.split_pairs(candidates, references))
    assert sorted(i for part in parts for i in part) == list(range(40))
    for part in parts:
        tokens = sum(len(ids) for i in part for ids in (*candidates[i], *references[i]))
        assert tokens <= 50 or part == [3] or len(part) == 1


def test_block_size_does_not_change_the_scores(model_folder, comments, monkeypatch):
    metric = SimLLM(model_folder, similarity="f1", on_long="window")
    texts = [*comments[:30], comments[0], " ".join(comments[:40])]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = metric.score(texts, texts[::-1]).values
        monkeypatch.setattr(embedding, "_TOKENS", 100)
        assert metric.score(texts, texts[::-1]).values == pytest.approx(whole, abs=1e-6)


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
