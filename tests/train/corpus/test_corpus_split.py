import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.train.corpus.conftest import lines
from train.corpus import build
from train.corpus.config import CorpusConfig
from train.corpus.merge import choose_held_out


def split(repositories, share=0.1):
    comments = np.random.default_rng(0).integers(2**64, size=len(repositories), dtype=np.uint64)
    repositories = np.array(repositories, np.uint64)
    return choose_held_out(comments, repositories, np.ones(len(repositories), bool), share)


@given(st.lists(st.integers(1, 300), min_size=1, max_size=40), st.floats(0.05, 0.5))
def test_repositories_are_not_split_unless_all_are(sizes, share):
    names = np.repeat(np.random.default_rng(1).integers(1, 2**63, len(sizes)), sizes)
    held = split(names, share)
    sides = [set(held[names == name]) for name in set(names)]
    if all(len(side) == 1 for side in sides) and held.any():
        assert held.mean() <= share + 1e-9 or len(names) < 50


@pytest.mark.parametrize("sizes", [[1000], [5000, 5000], [50] * 100, [3000, *[10] * 300], []])
def test_held_out_share_is_close_to_the_requested_share(sizes):
    names = np.repeat(np.random.default_rng(2).integers(1, 2**63, len(sizes)), sizes)
    unknown = [0] * 2000
    held = split([*names, *unknown])
    assert 0.08 < held.mean() < 0.12


def test_the_split_of_texts_depends_on_the_text_alone(tmp_path):
    texts = [f"adds {number} to the list" for number in range(300)]
    (tmp_path / "a.txt").write_text("\n".join(texts))
    (tmp_path / "b.txt").write_text("\n".join(reversed(texts)))
    for name in ("a", "b"):
        build.build(CorpusConfig((str(tmp_path / f"{name}.txt"),)), tmp_path / name)
    assert set(lines(tmp_path / "a", "test.txt")) == set(lines(tmp_path / "b", "test.txt"))
