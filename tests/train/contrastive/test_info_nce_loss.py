"""The InfoNCE loss, compared with that of sentence-transformers or by hand."""

import pytest
import torch

from tests.train.contrastive.conftest import embeddings, with_gradients
from train.contrastive.losses import info_nce

NONE = torch.zeros(20, 20, dtype=torch.bool)


@pytest.mark.slow
@pytest.mark.parametrize("negatives", [0, 1])
def test_info_nce_equals_sentence_transformers(reference_losses, reference_model, negatives):
    """In both implementations, hard negatives count only for the first text of each pair."""
    theirs = reference_losses.MultipleNegativesRankingLoss(
        reference_model,
        scale=20.0,
        directions=("query_to_doc", "doc_to_query"),
        partition_mode="per_direction",
    )
    rows = embeddings(2 + negatives)
    expected = with_gradients(lambda *rows: theirs.compute_loss_from_embeddings(list(rows), None), *rows)
    actual = with_gradients(lambda a, b, *hard: info_nce(a, b, NONE, 0.05, *hard), *rows)
    assert (actual - expected).abs().max() < 1e-6


def test_hard_negative_weight_equals_copies_of_the_negatives():
    first, second, hard = embeddings(3)
    three = info_nce(first, second, NONE, 0.05, hard, weight=3.0)
    assert three.item() == pytest.approx(
        info_nce(first, second, NONE, 0.05, hard.repeat(3, 1)).item(), abs=1e-5
    )
    assert three > info_nce(first, second, NONE, 0.05, hard) > info_nce(first, second, NONE, 0.05)


@pytest.mark.slow
def test_texts_with_the_same_meaning_are_no_negatives(reference_losses, reference_model):
    """The pairs are in two groups; all texts of a group have the same meaning.

    The loss is the mean loss of single pairs for which only texts of the other group are negatives.
    """
    first, second = embeddings(2)
    same = torch.arange(20)[:, None] // 10 == torch.arange(20) // 10
    theirs = reference_losses.MultipleNegativesRankingLoss(reference_model, scale=20.0)
    total = 0.0
    for a, b in ((first, second), (second, first)):
        for row in range(20):
            others = [b[other : other + 1] for other in range(20) if not same[row, other]]
            columns = [a[row : row + 1], b[row : row + 1], *others]
            total += theirs.compute_loss_from_embeddings(columns, None).item() / 40
    assert info_nce(first, second, same, 0.05).item() == pytest.approx(total, abs=1e-6)
