"""One contrastive update, embedded in chunks, twice or by several processes, is one update."""

import itertools
import json
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from simllm import checkpoint
from simllm.text import clean
from tests.conftest import ROOT
from train.config import ContrastiveConfig, load
from train.contrastive import Contrastive
from train.distributed import World
from train.updates import Updates

DROPOUT = 0.2


def settings(folder, *more):
    """Every kind of source, in few texts."""
    positives = (
        f"[{{source: {folder}/train.txt, share: 3, fields: [], word_dropout: 0.2}}, "
        f"{{source: {folder}/train.txt, share: 3, fields: [], rewording: true, hard_negatives: 2}}, "
        f"{{source: {folder}/pairs.jsonl, share: 1, fields: [a, b, c]}}]"
    )
    fields = "fields: [reference, candidate, rating]"
    rated = f"[{{sources: [{folder}/rated.jsonl], {fields}, pairs: 9, weight: 0.1}}]"
    overlap = f"{{source: {folder}/pairs.jsonl, fields: [a, b], pairs: 7, weight: 0.5}}"
    overrides = [f"model={folder}/model", f"positives={positives}", f"rated={rated}", f"overlap={overlap}"]
    overrides += [
        f"dev=[{folder}/rated.jsonl]",
        f"dev_comments={folder}/train.txt",
        "exclude=[]",
        "pairs=24",
        "chunk_tokens=200",
        "precision=fp32",
        "out=none",
    ]
    return load(ContrastiveConfig, ROOT / "configs" / "contrastive.yaml", [*overrides, *more])


def update(folder, world, *more):
    """Loss and gradients of update 3, over all processes."""
    task = Contrastive(settings(folder, *more), world)
    task.model.train()
    loss = 0.0
    for part, _ in task.losses(3):
        part.backward()
        loss += part.item()
    world.add_gradients(task.model)
    gradients = {name: p.grad for name, p in task.model.named_parameters() if p.grad is not None}
    return gradients | {"loss": torch.tensor(world.total(loss))}


@pytest.fixture(scope="module")
def folder(comments, model_folder, tmp_path_factory):
    """Sources, and a model with dropout."""
    folder = tmp_path_factory.mktemp("update")
    texts = sorted({text for text in map(clean, comments) if 2 < text.count(" ") < 20})
    (folder / "train.txt").write_text("".join(text + "\n" for text in texts))
    pairs = [{"a": a, "b": b} for a, b in itertools.pairwise(texts[:40])]
    pairs[::2] = [pair | {"c": text} for pair, text in zip(pairs[::2], texts[40:], strict=False)]
    rated = [
        {"reference": a, "candidate": b, "rating": i % 5}
        for i, (a, b) in enumerate(itertools.pairwise(texts[:30]))
    ]
    for name, rows in (("pairs", pairs), ("rated", rated)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    trained = checkpoint.load(model_folder)
    checkpoint.save(folder / "model", trained.encoder, trained.tokenizer, trained.info, "# A card\n")
    config = json.loads((folder / "model" / "config.json").read_text())
    config |= {"hidden_dropout_prob": DROPOUT, "attention_probs_dropout_prob": DROPOUT}
    (folder / "model" / "config.json").write_text(json.dumps(config))
    return folder


@pytest.fixture(scope="module")
def whole(folder):
    return update(folder, World())


def several(processes, folder, out, *more):
    """Each process leaves what `update` gives."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={processes}"]
    subprocess.run(
        [*command, __file__, str(folder), str(out), *more],
        cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}, check=True, timeout=300,
    )  # fmt: skip


def assert_equal(actual, expected, tolerance=1e-6):
    assert actual.keys() == expected.keys()
    for name, values in expected.items():
        scale = max(1.0, float(values.abs().max()))
        assert (actual[name] - values).abs().max() <= tolerance * scale, name


def test_cached_gradients_are_the_gradients(folder, whole):
    assert_equal(update(folder, World(), "cache_gradients=true"), whole)


def test_it_is_the_loss_of_all_texts_together(folder):
    """Without dropout the chunks do not matter, and plain autograd says the same."""
    task = Contrastive(settings(folder, "chunk_tokens=100000"), World())
    task.model.eval()
    batch = task.updates[3]
    loss = task._loss(task._embed(batch.ids), batch)
    loss.backward()
    expected = {name: p.grad.clone() for name, p in task.model.named_parameters() if p.grad is not None}
    for chunk in (64, 300):
        task = Contrastive(settings(folder, f"chunk_tokens={chunk}"), World())
        task.model.eval()
        parts = [part for part, _ in task.losses(3)]
        sum(parts).backward()
        assert sum(parts).item() == pytest.approx(loss.item(), abs=1e-5)
        gradients = {n: p.grad for n, p in task.model.named_parameters() if p.grad is not None}
        assert_equal(gradients, expected, 5e-6)  # products of other shapes round otherwise


@pytest.fixture(scope="module")
def beside(folder, tmp_path_factory):
    """Overrides: a model without dropout, and language modelling."""
    plain = checkpoint.load(folder / "model")
    out = tmp_path_factory.mktemp("beside")
    for module in plain.encoder.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    config = replace(plain.encoder.config, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    plain.encoder.config = config
    checkpoint.save(out / "model", plain.encoder, plain.tokenizer, plain.info, "# A card\n")
    texts = f"texts: {folder}/train.txt, batch_tokens: 900, predict_probability: 0.3, weight: 0.5"
    return [f"model={out}/model", f"out={out}", f"language_model={{{texts}}}"]


def test_language_modelling_adds_its_loss(folder, beside):
    both, alone = update(folder, World(), *beside), update(folder, World(), *beside, "language_model=null")
    task = Contrastive(settings(folder, *beside), World())
    batches = task.beside._batches
    parts = batches.update(3, 1)
    loss = 0.5 * task.model(batches.permuted(*parts[0])) / batches.count(parts)
    loss.backward()
    assert 600 < batches.shape()[np.isin(batches.texts, parts[0][1]), 0].sum() < 1200
    gradients = {name: p.grad for name, p in task.model.named_parameters() if p.grad is not None}
    assert {"head.bias", "head.dense.weight"} <= gradients.keys()
    expected = {"loss": alone["loss"] + loss.item()} | {
        name: values + alone.get(name.removeprefix("encoder."), 0) for name, values in gradients.items()
    }
    assert_equal(both, expected, 5e-6)


def test_language_modelling_reads_nothing_that_is_excluded(folder, beside, tmp_path):
    texts = (folder / "train.txt").read_text().splitlines()
    row = {"reference": texts[3], "candidate": texts[5], "rating": 1}
    (tmp_path / "rated.jsonl").write_text(json.dumps(row) + "\n")
    Contrastive(settings(folder, *beside, f"out={tmp_path}", f"exclude=[{tmp_path}/rated.jsonl]"), World())
    (kept,) = tmp_path.glob("language-model/*/texts.txt")
    assert {texts[3], texts[5]} <= set(texts) - set(kept.read_text().splitlines())
    assert len(kept.read_text().splitlines()) > 0.9 * len(texts)


@pytest.mark.parametrize("processes", [1, 2])
def test_language_modelling_by_several_processes(folder, beside, tmp_path, processes):
    whole = update(folder, World(), *beside)
    several(processes, folder, tmp_path, "cache_gradients=true", *beside)
    for rank in range(processes):
        assert_equal(load_file(tmp_path / f"{rank}.safetensors"), whole)


def test_dropout_is_drawn(folder, whole):
    task = Contrastive(settings(folder), World())
    task.model.eval()
    assert sum(part.item() for part, _ in task.losses(3)) != pytest.approx(whole["loss"].item(), abs=1e-3)


@pytest.mark.parametrize(("processes", "cached"), [(2, "true"), (3, "false")])
def test_by_several_processes(folder, whole, tmp_path, processes, cached):
    several(processes, folder, tmp_path, f"cache_gradients={cached}")
    for rank in range(processes):
        assert_equal(load_file(tmp_path / f"{rank}.safetensors"), whole)


if __name__ == "__main__":  # one of several processes
    from pathlib import Path

    from train.distributed import joined

    with joined() as world:
        result = update(Path(sys.argv[1]), world, *sys.argv[3:])
        save_file({k: v.contiguous() for k, v in result.items()}, f"{sys.argv[2]}/{world.rank}.safetensors")


@pytest.mark.parametrize(("held_out", "opposites"), [("false", ["decrypt"]), ("true", [])])
def test_the_words_of_the_contrast_set_can_be_held_out(folder, held_out, opposites):
    config = settings(folder, f"hold_out_contrast={held_out}")
    updates = Updates(config, checkpoint.load(config.model))
    known = updates.positives[1].lexicon.opposites.get("encrypt", [])
    assert [option.word for option in known] == opposites
