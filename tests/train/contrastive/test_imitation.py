"""Imitation adds its loss to the contrastive stage: the encoder also learns embeddings of larger encoders."""

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from simllm.errors import InputError
from simllm.metric import SimLLM
from simllm.model import saved_model
from simllm.model.torch_engine import pad
from tests.conftest import ROOT
from tests.train.contrastive.one_update import assert_equal, settings, update, update_in_processes
from train.contrastive.__main__ import load_or_compute_targets, train
from train.contrastive.config import ContrastiveConfig
from train.contrastive.task import ContrastiveTask
from train.distill import teachers as teacher_models
from train.distill.targets import ngram_cosines
from train.distill.task import correlation_loss, pair_loss
from train.runtime.config import load
from train.runtime.distributed import World
from train.runtime.signals import StopRequest

pytestmark = pytest.mark.slow

NEAR = ("imitation.neighbours=3", "imitation.ngram_share=0.25", "imitation.pair_weight=10")


@pytest.fixture(scope="module")
def overrides(update_folder, teachers, tmp_path_factory):
    """Return a function: folder -> configuration overrides with a triplet loss, an imitation, no dropout."""
    plain = saved_model.load(update_folder / "model")
    model = tmp_path_factory.mktemp("start") / "model"
    plain.encoder.config = replace(
        plain.encoder.config, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
    )
    saved_model.save(model, plain.encoder, plain.tokenizer, plain.info, "# A card\n")
    folders = f"[{teachers['bert']}, {teachers['mpnet']}]"
    imitation = (
        f"imitation={{texts: [{{source: {update_folder}/train.txt}}], max_texts: 150, teachers: {folders}, "
        "groups: 12, cosine_weight: 4, similarity_weight: 2}"
    )
    losses = ("info_nce_weight=0", "triplet_weight=1", "rated=[]", "overlap=null")

    def made(out, *more):
        return [f"model={model}", f"out={out}", *losses, imitation, *more]

    return made


def test_several_processes_compute_the_same_update(run, update_folder, overrides, tmp_path):
    whole = update(update_folder, World(), *overrides(tmp_path / "alone", *NEAR))
    out = tmp_path / "ranks"
    out.mkdir()
    more = overrides(tmp_path / "together", *NEAR)
    for result in update_in_processes(run, 2, update_folder, out, *more):
        assert_equal(result, whole, 1e-5)


def test_loss_is_added(update_folder, overrides, tmp_path):
    both = update(update_folder, World(), *overrides(tmp_path))
    alone = update(update_folder, World(), *overrides(tmp_path, "imitation=null"))
    config = settings(update_folder, *overrides(tmp_path))
    task = ContrastiveTask(config, World(), load_or_compute_targets(config, World()))
    added = sum(part()[0].item() for part in task.imitation.losses(3))
    assert added > 0.5
    assert both["loss"].item() == pytest.approx(alone["loss"].item() + added, abs=1e-4)


def test_anchor_and_imitation_read_their_own_embeddings(update_folder, overrides, tmp_path):
    """The imitation compares the teachers with the encoder that is being trained, not with the anchor."""
    more = overrides(tmp_path, "anchor_weight=2")
    config = settings(update_folder, *more)
    targets = load_or_compute_targets(config, World())
    task = ContrastiveTask(config, World(), targets)
    with torch.no_grad():
        for weight in task.anchor.encoder.parameters():
            weight.zero_()
    added = sum(part()[0].item() for part in task.imitation.losses(3))
    plain = settings(update_folder, *overrides(tmp_path))
    alone = ContrastiveTask(plain, World(), load_or_compute_targets(plain, World()))
    assert added == pytest.approx(sum(part()[0].item() for part in alone.imitation.losses(3)), abs=1e-5)


def test_near_texts_join_the_groups_of_an_update(update_folder, overrides, tmp_path):
    """They are near by the teachers, and n-grams have their share in the cosines to learn."""
    near = ("imitation.neighbours=3", "imitation.ngram_share=0.25", "imitation.groups=4")
    config = settings(update_folder, *overrides(tmp_path, *near))
    targets = load_or_compute_targets(config, World())
    imitation = ContrastiveTask(config, World(), targets).imitation
    batch, again = (imitation._make(3) for _ in range(2))
    assert batch.ids == again.ids
    seeds = imitation.starts[imitation.choose_groups(3)]
    numbers = [imitation.ids.index(ids) for ids in batch.ids]
    assert set(seeds) < set(numbers)
    assert len(numbers) <= 4 * len(seeds)
    whole = targets.teacher_embeddings(np.arange(targets.count))
    ranks = (-(whole[seeds] @ whole.T)).argsort(dim=1).argsort(dim=1).amin(dim=0)
    others = [number for number in numbers if number not in seeds]
    assert np.mean(ranks[others].numpy()) < np.mean(ranks.numpy()) - 5
    rows = whole[numbers]
    expected = 0.75 * rows @ rows.T + 0.25 * ngram_cosines([imitation.texts[i] for i in numbers])
    assert torch.allclose(batch.cosines, expected, atol=1e-5)


def test_loss_of_pairs_is_added(update_folder, overrides, tmp_path):
    def loss(*more):
        config = settings(update_folder, *overrides(tmp_path, *more))
        imitation = ContrastiveTask(config, World(), load_or_compute_targets(config, World())).imitation
        return sum(part()[0].item() for part in imitation.losses(3)), imitation

    without, imitation = loss()
    batch = imitation._make(3)
    with torch.no_grad():
        embedded = imitation.embed(*pad(batch.ids))
    added = 10 * pair_loss(embedded, batch.cosines).item()
    assert added > 0.1
    assert loss("imitation.pair_weight=10")[0] == pytest.approx(without + added, abs=1e-4)


def test_imitation_may_be_the_only_loss(update_folder, overrides, tmp_path):
    """That of the correlation, beside an anchor that only compares the encoder with its start."""
    weights = ("cosine_weight=0", "similarity_weight=0", "correlation_weight=3", "neighbours=3")
    alone = ("triplet_weight=0", "anchor_weight=2", *(f"imitation.{weight}" for weight in weights))
    config = settings(update_folder, *overrides(tmp_path, *alone))
    task = ContrastiveTask(config, World(), load_or_compute_targets(config, World()))
    batch = task.imitation._make(3)
    with torch.no_grad():
        expected = 3 * correlation_loss(task.embed(*pad(batch.ids)), batch.cosines).item()
    assert sum(part()[0].item() for part in task.losses(3)) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("without", ["imitation=null", "anchor_weight=0"])
def test_a_run_needs_a_loss(update_folder, overrides, tmp_path, without):
    without = ("triplet_weight=0", "anchor_weight=1", without)
    with pytest.raises(InputError, match="must not both be 0 without imitation and anchor_weight"):
        settings(update_folder, *overrides(tmp_path, *without))


@pytest.mark.parametrize("wrong", ["neighbours=-1", "neighbours=65", "ngram_share=1", "pair_weight=-1"])
def test_wrong_settings_of_near_texts_are_refused(update_folder, overrides, tmp_path, wrong):
    with pytest.raises(InputError, match=wrong.partition("=")[0]):
        settings(update_folder, *overrides(tmp_path, f"imitation.{wrong}"))


def test_recipe_of_near_texts_differs_from_that_of_many_texts():
    near, longer = (
        load(ContrastiveConfig, ROOT / "configs" / f"{name}.yaml", []) for name in ("near", "longer")
    )
    assert (near.imitation.texts, near.positives) == (longer.imitation.texts, longer.positives)
    first, second, third = near.imitation.teachers
    assert ((first,), second) == (longer.imitation.teachers, near.model)
    assert third == "teachers/all-mpnet-base-v2"
    assert near.imitation.neighbours
    assert not longer.imitation.neighbours


def test_false_hard_negatives_are_left_out(update_folder, overrides, tmp_path):
    task = ContrastiveTask(settings(update_folder, *overrides(tmp_path, "imitation=null")), World())
    batch = task.batches[3]
    rows = torch.randn(len(batch.ids), 32, generator=torch.Generator().manual_seed(0))
    marked = torch.ones_like(batch.false_hard_negatives)
    assert task._loss(rows, batch).item() > 0
    assert task._loss(rows, replace(batch, false_hard_negatives=marked)).item() == 0


def test_without_info_nce_pairs_are_not_compared_with_each_other(update_folder, overrides, tmp_path):
    """The loss of all pairs is the mean over the hard negatives of each pair."""
    config = settings(update_folder, *overrides(tmp_path, "imitation=null"))
    task = ContrastiveTask(config, World())
    batch = task.batches[3]
    rows = torch.randn(len(batch.ids), 32, generator=torch.Generator().manual_seed(0))
    first, second, negatives = (F.normalize(rows[a:b], dim=1) for a, b in pairwise(batch.ends[:4]))
    losses = []
    for negative, pair in zip(negatives, batch.negative_pairs, strict=True):
        positive = first[pair] @ second[pair]
        for text in (first[pair], second[pair]):
            losses.append(F.softplus((text @ negative - positive) / config.triplet_temperature))
    assert len(losses) > 10
    owners = [number for number, pair in enumerate(task.batches.pairs(3)) for _ in pair.negatives]
    assert batch.negative_pairs.tolist() == owners
    assert task._loss(rows, batch).item() == pytest.approx(torch.stack(losses).mean().item(), abs=1e-5)


def test_encoder_comes_nearer_to_its_teachers(update_folder, overrides, tmp_path, teachers):
    """After a run, similarities agree better with the teachers'; the embeddings stay in the run folder."""
    steps = ("updates=60", "warmup_updates=2", "evaluate_every=60", "learning_rate=3e-3", "pairs=6")
    config = settings(update_folder, *overrides(tmp_path / "run", *steps, "imitation.groups=60"))
    with StopRequest() as stop:
        model = train(config, World(), stop)
    (file,) = (tmp_path / "run" / "texts").glob("*/texts.txt")
    texts = file.read_text().splitlines()[:100]
    folders = [teachers["bert"], teachers["mpnet"]]
    found = [teacher_models.load(folder, torch.device("cpu"))(texts) for folder in folders]
    wanted = torch.from_numpy(sum(embeddings @ embeddings.T for embeddings in found)) / 2

    def agreement(model):
        embeddings = F.normalize(torch.from_numpy(SimLLM(model).embed(texts)), dim=1)
        pairs = torch.triu_indices(len(texts), len(texts), 1)
        both = torch.stack([(embeddings @ embeddings.T)[*pairs], wanted[*pairs]])
        return torch.corrcoef(both)[0, 1].item()

    assert agreement(model) > agreement(config.model) + 0.2
    assert len(list((tmp_path / "run" / "teachers").glob("*/*/embeddings.npy"))) == 2
    provenance = json.loads((model / "simllm.json").read_text())["provenance"]
    assert provenance["objective"] == "contrastive (triplets), imitation of larger encoders"
    assert (provenance["texts"], len(provenance["teachers"])) == (150, 2)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("triplet_weight=0", "info_nce_weight and triplet_weight must not both be 0"),
        ("triplet_weight=-1", "triplet_weight must be positive"),
        ("imitation.teachers=[]", "texts and teachers must not be empty"),
        ("imitation.groups=0", "groups and max_texts must be positive"),
        ("imitation.max_texts=0", "groups and max_texts must be positive"),
        ("positives=[{source: a, share: 1}]", "triplet_weight needs positives with hard_negatives"),
        ("head_only=true", "head_only needs meaning, and neither language_model nor imitation"),
    ],
)
def test_wrong_settings_are_refused(update_folder, overrides, tmp_path, override, message):
    with pytest.raises(InputError, match=message):
        settings(update_folder, *overrides(tmp_path, override))
