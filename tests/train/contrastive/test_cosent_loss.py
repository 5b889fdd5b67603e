"""The CoSENT loss, compared with that of sentence-transformers or by hand."""

import pytest
import torch

from tests.train.contrastive.conftest import embeddings, with_gradients
from train.contrastive.losses import cosent


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
