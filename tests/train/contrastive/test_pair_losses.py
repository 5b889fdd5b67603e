"""The losses of the contrastive stage, compared with those of sentence-transformers or by hand."""

import numpy as np
import pytest
import torch

from train.contrastive.pair_losses import cosent, info_nce, triplet_loss

NONE = torch.zeros(20, 20, dtype=torch.bool)


@pytest.fixture(scope="module")
def losses():
    """Return the losses of sentence-transformers (imported here because that takes seconds)."""
    return pytest.importorskip("sentence_transformers.sentence_transformer.losses")


@pytest.fixture(scope="module")
def model(model_folder):
    """Return a model for the constructors of the losses; the losses are computed from given embeddings."""
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(model_folder), device="cpu")


def embeddings(count, rows=20, seed=0):
    return torch.randn(count, rows, 32, generator=torch.Generator().manual_seed(seed))


def with_gradients(loss, *rows):
    leaves = [row.clone().requires_grad_() for row in rows]
    value = loss(*leaves)
    value.backward()
    return torch.cat([value.detach().reshape(1), *(leaf.grad.flatten() for leaf in leaves)])


@pytest.mark.slow
@pytest.mark.parametrize("negatives", [0, 1])
def test_info_nce_equals_sentence_transformers(losses, model, negatives):
    """In both implementations, hard negatives count only for the first text of each pair."""
    theirs = losses.MultipleNegativesRankingLoss(
        model, scale=20.0, directions=("query_to_doc", "doc_to_query"), partition_mode="per_direction"
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
def test_texts_with_the_same_meaning_are_no_negatives(losses, model):
    """The pairs are in two groups; all texts of a group have the same meaning.

    The loss is the mean loss of single pairs for which only texts of the other group are negatives.
    """
    first, second = embeddings(2)
    same = torch.arange(20)[:, None] // 10 == torch.arange(20) // 10
    theirs = losses.MultipleNegativesRankingLoss(model, scale=20.0)
    total = 0.0
    for a, b in ((first, second), (second, first)):
        for row in range(20):
            others = [b[other : other + 1] for other in range(20) if not same[row, other]]
            columns = [a[row : row + 1], b[row : row + 1], *others]
            total += theirs.compute_loss_from_embeddings(columns, None).item() / 40
    assert info_nce(first, second, same, 0.05).item() == pytest.approx(total, abs=1e-6)


@pytest.mark.slow
def test_cosent_equals_sentence_transformers(losses, model):
    first, second = embeddings(2)
    ratings = torch.randint(0, 5, (20,), generator=torch.Generator().manual_seed(1)).float()  # with ties
    theirs = losses.CoSENTLoss(model, scale=20.0)
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
