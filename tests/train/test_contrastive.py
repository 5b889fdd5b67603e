import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

from simllm import SimLLM
from simllm.errors import InputError
from simllm.text import clean
from tests.conftest import ROOT
from train.config import ContrastiveConfig, PositivesConfig, load
from train.contrastive import info_nce
from train.corpus.evaluated import Evaluated
from train.positives import Positives, draw


def test_info_nce_equals_sentence_transformers(model_folder):
    first, second = torch.randn(2, 20, 32, generator=torch.Generator().manual_seed(0))
    loss = MultipleNegativesRankingLoss(
        SentenceTransformer(str(model_folder), device="cpu"),
        scale=20.0,
        directions=("query_to_doc", "doc_to_query"),
        partition_mode="per_direction",
    )
    expected = loss.compute_loss_from_embeddings([first, second], torch.empty(0))
    groups = [bytes([i]) for i in range(20)]
    assert info_nce(first, second, groups, 0.05).item() == pytest.approx(expected.item(), abs=1e-6)


def test_a_text_of_the_same_group_is_no_negative():
    first, second = torch.randn(2, 3, 8, generator=torch.Generator().manual_seed(0))
    moved = second.clone()
    moved[1] = first[0]  # as near to row 0 as can be
    together, apart = [b"a", b"a", b"b"], [b"a", b"c", b"b"]
    rows = first.clone().requires_grad_()
    info_nce(rows, moved, together, 0.05).backward()
    alone = first.clone().requires_grad_()
    info_nce(alone, moved, apart, 0.05).backward()
    assert rows.grad[0].norm() < alone.grad[0].norm()
    assert info_nce(first, moved, together, 0.05) < info_nce(first, moved, apart, 0.05)


@pytest.fixture
def views(comments, tmp_path):
    file = tmp_path / "train.txt"
    file.write_text("".join(text + "\n" for text in sorted({clean(comment) for comment in comments})))
    return PositivesConfig(source=str(file), share=3.0, word_dropout=0.3)


@pytest.fixture
def pairs(tmp_path):
    rows = [("adds two lists", "combines 2 arrays", "g"), ("gets it", "sets it", "h"), ("a b", "a b", "i")]
    file = tmp_path / "pairs.jsonl"
    file.write_text("".join(json.dumps(dict(zip("abg", row, strict=True))) + "\n" for row in rows))
    return PositivesConfig(source=str(file), share=1.0, max_overlap=0.9)


def test_pairs_are_drawn_by_shares_as_a_function_of_seed_and_update(views, pairs):
    sources = [Positives(views, Evaluated([])), Positives(pairs, Evaluated([]))]
    drawn = draw(sources, 2000, seed=1, update=5)
    assert drawn == draw(sources, 2000, seed=1, update=5) != draw(sources, 2000, seed=1, update=6)
    given = sum(pair.first in ("adds two lists", "gets it") for pair in drawn)
    assert given / 2000 == pytest.approx(0.25, abs=0.03)
    assert all(pair.first and pair.second for pair in drawn)
    assert np.mean([pair.first != pair.second for pair in drawn]) > 0.8


def test_views_leave_out_the_asked_share_of_words(views):
    source = Positives(views, Evaluated([]))
    words = sum(len(pair.first.split()) for pair in source.pairs)
    random = np.random.default_rng(0)
    drawn = [source.draw(random) for _ in range(3000)]
    mean = words / len(source.pairs)
    assert np.mean([len(pair.first.split()) for pair in drawn]) / mean == pytest.approx(0.7, abs=0.06)


def test_pairs_are_filtered_by_overlap_and_against_rated_texts(pairs):
    assert len(Positives(pairs, Evaluated([])).pairs) == 2
    assert len(Positives(pairs, Evaluated(["sets it"])).pairs) == 1
    with pytest.raises(InputError, match="no pair is left"):
        Positives(pairs, Evaluated(["sets it", "adds two lists"]))


def test_a_source_without_the_fields_is_named(pairs):
    config = PositivesConfig(source=pairs.source, share=1.0, fields=("a", "c"))
    with pytest.raises(InputError, match=r'pairs\.jsonl, line 1: expected a text under "c"'):
        Positives(config, Evaluated([]))


def test_the_shipped_config_loads():
    config = load(ContrastiveConfig, ROOT / "configs" / "contrastive.yaml", [])
    assert [source.share for source in config.positives] == [0.5, 0.5]


def run(out, model_folder, views, rated):
    overrides = [f"out={out}", f"model={model_folder}", f"dev={rated}", f"exclude=[{rated}]"]
    overrides += [f"positives=[{{source: {views.source}, share: 1, word_dropout: 0.2}}]"]
    overrides += ["pairs=64", "updates=60", "warmup_updates=3", "evaluate_every=10", "learning_rate=2e-3"]
    command = [sys.executable, "-m", "train.contrastive", "configs/contrastive.yaml", *overrides]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)


def test_a_real_run_learns_and_leaves_a_model_folder(model_folder, views, comments, tmp_path):
    """Rated by the share of words that two comments have in common."""
    texts = [clean(text) for text in comments[:120]]
    rated = tmp_path / "rated.jsonl"
    with rated.open("w") as file:
        for a, b in zip(texts, texts[1:] + texts[:1], strict=True):
            words = set(a.split()), set(b.split())
            rating = len(words[0] & words[1]) / len(words[0] | words[1])
            file.write(json.dumps({"reference": a, "candidate": b, "rating": rating}) + "\n")
    done = run(tmp_path / "run", model_folder, views, rated)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    assert [line["update"] for line in lines] == [10, 20, 30, 40, 50, 60]
    assert lines[-1]["train_loss"] < 0.8 * lines[0]["train_loss"]
    info = json.loads((tmp_path / "run" / "model" / "simllm.json").read_text())
    best = max(line["dev_spearman"] for line in lines)
    assert info["provenance"]["dev_spearman"] == best
    before = SimLLM(model_folder)
    assert info["provenance"]["start"]["hash"] == before.checkpoint.hash
    after = SimLLM(tmp_path / "run" / "model")
    unrelated = (texts[:50], texts[50:100])
    assert after.score(*unrelated).mean < before.score(*unrelated).mean
