"""Figures of how well a model tells rewordings from changes of meaning, and their text on the model card."""

import pytest
from sklearn.metrics import roc_auc_score

from simllm import SimLLM
from simllm.perturb.summaries import lexicon
from train.contrastive.meaning_pairs import read_items
from train.corpus.decontaminate import ExcludedTexts
from train.release import card, measure


def test_flags_are_counted_among_similar_texts(head_folder, items):
    metric = SimLLM(head_folder)
    test = read_items(items, "test", ExcludedTexts([]), lexicon.load().held_out_words)
    flags = measure.measure_flags(metric, test)
    scores = metric.score([item.same[1] for item in test], [item.same[0] for item in test])
    similar = scores.values >= 0.5
    found = flags["rewordings"]
    assert found["similar"] == similar.sum() > 0
    assert found["flagged"] == pytest.approx((scores.same[similar] < 0.3).mean())
    assert (
        f"it marks {found['flagged']:.0%} of {found['similar']} similar rewordings" in card._flags(flags)[0]
    )


def test_all_unseen_items_are_measured(head_folder, items):
    metric = SimLLM(head_folder)
    unseen = read_items(items, None, ExcludedTexts([]), lexicon.load().held_out_words)
    figures = measure.measure_unseen_items(metric, unseen)
    assert figures["items"] == 100
    texts = [f"opens {i} files" for i in range(100)]
    same = metric.score([f"open {i} files" for i in range(100)], texts).same
    changed = metric.score([f"adds {i} keys" for i in range(100)], texts).same
    labels = [1] * 100 + [0] * 100
    assert figures["auc"]["simllm-same"] == pytest.approx(roc_auc_score(labels, [*same, *changed]), abs=1e-3)
    assert (
        f"simllm-same {figures['auc']['simllm-same']:.3f}".replace("0.", ".")
        in card._unseen_items(figures)[0]
    )
