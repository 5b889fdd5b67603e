"""Groups of text pairs: their sizes, and scores that do not depend on the sizes."""

import warnings

import numpy as np
import pytest

from simllm import SimLLM
from simllm.scoring import tokens as text_tokens


def test_blocks_are_bounded_and_contain_every_pair_once(monkeypatch):
    monkeypatch.setattr(text_tokens, "_TOKENS", 50)
    draw = np.random.default_rng(0)
    candidates, references = ([[(0,) * int(n)] for n in draw.integers(2, 30, 40)] for _ in range(2))
    references[3] = [(0,) * 64] * 3  # windows that exceed the size of a block
    parts = list(text_tokens.split_pairs(candidates, references))
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
        monkeypatch.setattr(text_tokens, "_TOKENS", 100)
        assert metric.score(texts, texts[::-1]).values == pytest.approx(whole, abs=1e-6)
