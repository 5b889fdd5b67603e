"""The split of a corpus into training and test texts, and pairs of comments that mean the same."""

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.train.corpus.conftest import lines, rows
from train.corpus import build
from train.corpus.config import CorpusConfig
from train.corpus.deduplicate import NearDuplicates, signature, words
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


OLD = '"""Module."""\n\ndef area(shape):\n    """Give the surface of a shape."""\n'
NEW = '"""Module."""\n\ndef area(shape):\n    """Returns how large it is."""\n'


def corpus(tmp_path, git, tree, last):
    work = tree(tmp_path / "work", 90)
    git(work, "init")
    for version, code in enumerate((OLD, last)):
        (work / "shape.py").write_text(code)
        git(work, "add", ".")
        git(work, "commit", "-m", str(version))
        git(work, "tag", f"v{version}")
    build.build(CorpusConfig((str(work),), tags=5, test_share=0.05), tmp_path / "corpus")
    return {
        (row["a"], row["b"]) for row in rows(tmp_path / "corpus", "pairs.jsonl") if row["kind"] == "version"
    }


def test_two_versions_of_a_function_are_a_pair(tmp_path, git, tree):
    assert corpus(tmp_path, git, tree, NEW) == {
        ("returns how large it is .", "give the surface of a shape .")
    }


def test_equally_named_functions_in_one_file_are_no_pair(tmp_path, git, tree):
    again = NEW.partition("\n\n")[2].replace("how large", "how small")
    assert not corpus(tmp_path, git, tree, NEW + "\n\n" + again)


def test_held_out_texts_are_in_no_pair(tmp_path):
    """Comments repeat texts of other comments: exactly, nearly, and split into two paragraphs."""
    long = [" ".join(f"word{(n * k) % 997}" for k in range(1, 61)) for n in range(1, 201)]
    with (tmp_path / "a.jsonl").open("w") as file:
        for n in range(200):
            other = long[(n + 7) % 200]
            added = (f"Adds the item of kind {abs(n - 4)}.", other, f"{other} more")
            cut = other.index(" ", 200)
            more = [long[n], added[n % 4]] if n % 4 < 3 else [other[:cut], other[cut:]]
            summary = f"Adds the item of kind {n}."
            row = {"summary": summary, "description": "\n\n".join([summary, *more])}
            file.write(json.dumps(row) + "\n")
    build.build(CorpusConfig((str(tmp_path / "a.jsonl"),), test_share=0.3), tmp_path / "corpus")
    held = lines(tmp_path / "corpus", "test.txt")
    pairs = rows(tmp_path / "corpus", "pairs.jsonl")
    assert len(held) > 50
    assert len(pairs) > 50
    near = NearDuplicates(np.array([signature(text) for text in held]))
    paragraphs = [text for text in held if not 10 < len(words(text)) < 60]  # no half texts
    for pair in pairs:
        assert not near(np.array([signature(pair[key]) for key in "ab"])).any()
        assert not [text for text in paragraphs if text in pair["b"] or overlap(text, pair["b"]) > 0.95]


def test_texts_close_to_held_out_texts_are_in_no_pair(tmp_path):
    with (tmp_path / "a.jsonl").open("w") as file:
        for n in range(80):
            words = [f"word{(n * k) % 997}" for k in range(1, 61)]
            first, between, last = (" ".join(words[:cut] + ["other"] * (60 - cut)) for cut in (60, 57, 54))
            described = {"summary": f"Adds item {n}.", "description": f"Adds item {n}.\n\n{between}"}
            for row in ({"summary": first}, {"summary": last}, described):
                file.write(json.dumps(row) + "\n")
    build.build(CorpusConfig((str(tmp_path / "a.jsonl"),), test_share=0.3), tmp_path / "corpus")
    near = NearDuplicates(np.array([signature(text) for text in lines(tmp_path / "corpus", "test.txt")]))
    pairs = [row["b"] for row in rows(tmp_path / "corpus", "pairs.jsonl")]
    assert len(pairs) > 5
    assert not near(np.array([signature(text) for text in pairs])).any()


def overlap(text, whole):
    """Return the share of the word bigrams of a text that are in another text."""
    pairs = set(pairwise(words(text)))
    return len(pairs & set(pairwise(words(whole)))) / len(pairs)


def test_pairs_train_the_contrastive_stage(tree, tmp_path):
    from simllm.perturb.summaries import lexicon
    from train.contrastive.batches import PositiveSource
    from train.contrastive.config import PositivesConfig
    from train.corpus.decontaminate import ExcludedTexts

    build.build(CorpusConfig((str(tree(tmp_path / "code" / "a").parent),)), tmp_path / "corpus")
    config = PositivesConfig(source=str(tmp_path / "corpus" / "pairs.jsonl"), share=1.0)
    assert len(PositiveSource(config, ExcludedTexts([]), lexicon.load())) >= 2
