"""The losses of contrastive training."""

import numpy as np
import pytest
import torch

from tests.train.contrastive.conftest import embeddings, with_gradients
from tests.train.contrastive.one_update import assert_equal, settings, update, without_dropout
from train.contrastive.losses import cosent, info_nce, triplet_loss
from train.contrastive.task import ContrastiveTask
from train.runtime.distributed import World

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


def test_triplet_loss_by_hand():
    """The second pair has no hard negative; of the first pair, each text is compared with its negative."""
    first = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    second = torch.tensor([[0.6, 0.8], [0.0, -1.0]])
    negatives = torch.tensor([[0.0, 2.0]])  # its cosines with the first pair are 0 and 0.8; the pair's is 0.6
    expected = (np.log1p(np.exp((0 - 0.6) / 0.5)) + np.log1p(np.exp((0.8 - 0.6) / 0.5))) / 2
    actual = triplet_loss(first, second, negatives, torch.tensor([0]), 0.5)
    assert actual.item() == pytest.approx(expected, abs=1e-6)


def test_triplet_loss_without_hard_negatives_is_zero():
    first, second = (rows.requires_grad_() for rows in embeddings(2))
    loss = triplet_loss(first, second, torch.empty(0, 32), torch.empty(0, dtype=torch.long), 0.1)
    loss.backward()
    assert loss.item() == 0
    assert not first.grad.any()


def test_triplet_loss_falls_if_the_negative_moves_away():
    first, second, negatives = embeddings(3)
    pairs = torch.arange(20)
    far = triplet_loss(first, second, -first - second, pairs, 0.1)
    assert far < triplet_loss(first, second, negatives, pairs, 0.1)
    assert triplet_loss(first, second, first, pairs, 0.1) > np.log(2)


@pytest.mark.slow
def test_cosent_equals_sentence_transformers(reference_losses, reference_model):
    first, second = embeddings(2)
    ratings = torch.randint(0, 5, (20,), generator=torch.Generator().manual_seed(1)).float()  # with ties
    theirs = reference_losses.CoSENTLoss(reference_model, scale=20.0)
    expected = with_gradients(
        lambda *rows: theirs.compute_loss_from_embeddings(list(rows), ratings), first, second
    )
    sets = torch.zeros(20)
    actual = with_gradients(lambda a, b: cosent(a, b, ratings, sets, 0.05), first, second)
    assert (actual - expected).abs().max() < 1e-5


def test_cosent_does_not_compare_pairs_of_different_sets():
    """Twenty sets with one pair each have the loss 0; the loss of two sets follows from their own losses."""
    first, second = embeddings(2)
    ratings = torch.arange(20.0)
    assert cosent(first, second, ratings, torch.arange(20), 0.05).item() == 0
    sets = torch.arange(20) % 2
    moved = ratings + 100 * sets  # another scale of ratings changes nothing
    whole = cosent(first, second, ratings, sets, 0.05)
    assert cosent(first, second, moved, sets, 0.05).item() == whole.item()
    parts = [
        cosent(first[sets == s], second[sets == s], ratings[sets == s], sets[sets == s], 0.05) for s in (0, 1)
    ]
    expected = torch.log(sum(part.exp() for part in parts) - 1)  # each has the 1 of log(1 + …)
    assert whole.item() == pytest.approx(expected.item(), abs=1e-5)


def test_equal_ratings_give_no_loss():
    first, second = embeddings(2)
    assert cosent(first, second, torch.ones(20), torch.zeros(20), 0.05).item() == 0


@pytest.mark.slow
def test_the_anchor_holds_the_encoder_at_its_start(update_folder, tmp_path):
    """The anchor loss adds no gradient at the encoder's start weights; at other weights, it is positive."""
    model = without_dropout(update_folder, tmp_path / "model")
    alone = update(update_folder, World(), model)
    assert_equal(update(update_folder, World(), model, "anchor_weight=0"), alone, 0.0)
    anchored = update(update_folder, World(), model, "anchor_weight=5")
    assert_equal(anchored, alone, 1e-5)
    task = ContrastiveTask(settings(update_folder, model, "anchor_weight=5"), World())
    with torch.no_grad():
        for parameter in task.encoder.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(0)))
    moved = sum(part()[0].item() for part in task.losses(3))
    task.config = settings(update_folder, model, "anchor_weight=1")
    assert moved > sum(part()[0].item() for part in task.losses(3)) + 1e-3
