"""One contrastive update is the same if it is computed in chunks or by several processes."""

import pytest

from simllm.model import saved_model
from simllm.model.torch_engine import pad
from tests.train.contrastive.one_update import assert_equal, settings, update, update_in_processes
from train.contrastive.batches import ContrastiveBatches
from train.contrastive.task import ContrastiveTask
from train.runtime.distributed import World


@pytest.fixture(scope="module")
def whole(update_folder):
    return update(update_folder, World())


def test_cached_gradients_equal_plain_gradients(update_folder, whole):
    assert_equal(update(update_folder, World(), "cache_gradients=true"), whole)


def test_loss_equals_the_loss_over_all_texts_at_once(update_folder):
    """Without dropout, chunks of any size give the loss and the gradients of all texts in one pass."""
    task = ContrastiveTask(settings(update_folder, "chunk_tokens=100000"), World())
    task.model.eval()
    batch = task.batches[3]
    loss = task._loss(task._embed_with_anchor(*pad(batch.ids)), batch)
    loss.backward()
    expected = {name: p.grad.clone() for name, p in task.model.named_parameters() if p.grad is not None}
    for chunk in (64, 300):
        task = ContrastiveTask(settings(update_folder, f"chunk_tokens={chunk}"), World())
        task.model.eval()
        parts = [part()[0] for part in task.losses(3)]
        sum(parts).backward()
        assert sum(parts).item() == pytest.approx(loss.item(), abs=1e-5)
        gradients = {n: p.grad for n, p in task.model.named_parameters() if p.grad is not None}
        assert_equal(gradients, expected, 5e-6)  # matrix products of other shapes round differently


def test_dropout_is_active(update_folder, whole):
    task = ContrastiveTask(settings(update_folder), World())
    task.model.eval()
    assert sum(part()[0].item() for part in task.losses(3)) != pytest.approx(whole["loss"].item(), abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(("processes", "cached"), [(2, "true"), (3, "false")])
def test_several_processes_compute_the_same_update(run, update_folder, whole, tmp_path, processes, cached):
    for result in update_in_processes(run, processes, update_folder, tmp_path, f"cache_gradients={cached}"):
        assert_equal(result, whole)


@pytest.mark.parametrize(("held_out", "opposites"), [("false", ["decrypt"]), ("true", [])])
def test_deciding_words_of_the_contrast_set_can_be_held_out(update_folder, held_out, opposites):
    config = settings(update_folder, f"hold_out_contrast={held_out}")
    updates = ContrastiveBatches(config, saved_model.load(config.model))
    known = updates.positives[1].lexicon.opposites.get("encrypt", [])
    assert [option.word for option in known] == opposites
