"""Shared helpers: one contrastive update and its gradients, in one or several processes."""

import itertools
import json
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from simllm.model import saved_model
from simllm.text_cleaning import clean
from tests.conftest import ROOT
from train.contrastive.__main__ import load_or_compute_targets
from train.contrastive.config import ContrastiveConfig
from train.contrastive.task import ContrastiveTask
from train.runtime.config import load
from train.runtime.distributed import join_processes
from train.runtime.gradients import GradientExchange

DROPOUT = 0.2


def sources(folder, comments, model_folder):
    """Write the training data of the contrastive stage, and a start model with dropout."""
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
    trained = saved_model.load(model_folder)
    saved_model.save(folder / "model", trained.encoder, trained.tokenizer, trained.info, "# A card\n")
    config = json.loads((folder / "model" / "config.json").read_text())
    config |= {"hidden_dropout_prob": DROPOUT, "attention_probs_dropout_prob": DROPOUT}
    (folder / "model" / "config.json").write_text(json.dumps(config))


def overrides(folder):
    """Return overrides of `configs/contrastive.yaml`: every kind of training data, of the folder."""
    positives = (
        f"[{{source: {folder}/train.txt, share: 3, fields: [], word_dropout: 0.2}}, "
        f"{{source: {folder}/train.txt, share: 3, fields: [], rewording: true, hard_negatives: 2}}, "
        f"{{source: {folder}/pairs.jsonl, share: 1, fields: [a, b, c]}}]"
    )
    fields = "fields: [reference, candidate, rating]"
    rated = f"[{{sources: [{folder}/rated.jsonl], {fields}, pairs: 9, weight: 0.1}}]"
    overlap = f"{{source: {folder}/pairs.jsonl, fields: [a, b], pairs: 7, weight: 0.5}}"
    return [
        f"model={folder}/model",
        f"positives={positives}",
        f"rated={rated}",
        f"overlap={overlap}",
        f"dev=[{folder}/rated.jsonl]",
        f"dev_comments={folder}/train.txt",
        "exclude=[]",
        "pairs=24",
        "chunk_tokens=200",
        "precision=fp32",
    ]


def settings(folder, *more):
    """Return a configuration of the contrastive stage with every kind of training data."""
    values = [*overrides(folder), "out=none", *more]
    return load(ContrastiveConfig, ROOT / "configs" / "contrastive.yaml", values)


def without_dropout(update_folder, folder):
    """Save the start model without dropout, and return the configuration override that names its folder."""
    config = json.loads((update_folder / "model" / "config.json").read_text())
    loaded = saved_model.load(update_folder / "model")
    saved_model.save(folder, loaded.encoder, loaded.tokenizer, loaded.info, "")
    config |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    (folder / "config.json").write_text(json.dumps(config))
    return f"model={folder}"


def update(folder, world, *more):
    """Return the loss and the gradients of update 3, summed over all processes."""
    config = settings(folder, *more)
    targets = load_or_compute_targets(config, world) if config.imitation else None
    task = ContrastiveTask(config, world, targets)
    task.model.train()
    loss = 0.0
    exchange, parts = GradientExchange(task.model, world), task.losses(3)
    for number, compute in enumerate(parts, 1):
        part, _ = compute()
        exchange.backward(part, is_last=number == len(parts))
        loss += part.item()
    gradients = {name: p.grad for name, p in task.model.named_parameters() if p.grad is not None}
    return gradients | {"loss": torch.tensor(world.sum_values(loss))}


def update_in_processes(run, processes, folder, out, *more):
    """Return the result of `update` in each of several processes."""
    ranks = run.ranks(processes, "tests.train.contrastive.one_update", folder, out, *more)
    assert [rank.finish() for rank in ranks] == [0] * processes, ranks[0].errors
    return [load_file(out / f"{rank}.safetensors") for rank in range(processes)]


def assert_equal(actual, expected, tolerance=1e-6):
    assert actual.keys() == expected.keys()
    for name, values in expected.items():
        scale = max(1.0, float(values.abs().max()))
        difference = (actual[name] - values).abs().max()
        assert difference <= tolerance * scale, f"{name}: {difference} of {scale}"


if __name__ == "__main__":  # entry point of one of several processes
    with join_processes() as world:
        result = update(Path(sys.argv[1]), world, *sys.argv[3:])
        save_file({k: v.contiguous() for k, v in result.items()}, f"{sys.argv[2]}/{world.rank}.safetensors")
