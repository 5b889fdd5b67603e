"""Pretrain an encoder: sources -> corpus -> vocabulary -> shards -> updates -> model folder.

    python -m train.pretrain configs/debug.yaml
    python -m train.pretrain configs/mini.yaml out=runs/mine 'corpus.sources=[my/*.jsonl.gz]'
    torchrun --nproc_per_node 4 -m train.pretrain configs/base.yaml

Every step leaves its result in the run's folder and is not repeated; a run that was
stopped or killed goes on when the same command is given again, also with another number
of processes. Exit status: 0 done, 1 diverged, 2 bad input, 75 or 130 stopped by a signal.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from simllm import checkpoint
from simllm.errors import InputError
from simllm.tokenizer import Tokenizer
from train import loop, run, shards, vocab
from train.ahead import Ahead
from train.attention import BLOCK, by_length, flexible
from train.batches import Batches
from train.config import PretrainConfig
from train.corpus import build
from train.distributed import World
from train.estimate import estimate
from train.flops import PRECISIONS, training_flops
from train.objective import PermutedLanguageModel
from train.permute import Permuted, fill_up
from train.run import say
from train.shards import Shards
from train.signals import Stop
from train.state import Progress


@dataclass(frozen=True)
class Material:
    """What is trained on: a vocabulary, and tokenized texts to learn from and to test with."""

    tokenizer: Tokenizer
    train: Shards
    test: Shards
    corpus_hash: str
    counts: object


class Pretraining:
    """The task: permuted language modelling, judged by perplexity on held-out texts."""

    def __init__(self, config: PretrainConfig, train: Shards, test: Shards, world: World) -> None:
        self.config, self.world = config, world
        self.batches, self.test_batches = (
            Batches(
                part.blocks(config.model.max_length) if config.packing == "blocks" else part,
                config.model.vocab_size,
                config.predict_probability,
                config.update_tokens,
                config.seed,
            )
            for part in (train, test)
        )
        self.flops_per_token = training_flops(config.model, self.batches.shape()) / self.batches.tokens
        # FlexAttention is made for GPUs and knows no dropout of attention weights.
        self.compiled = world.device.type == "cuda" and not config.model.attention_probs_dropout_prob
        torch.manual_seed(config.seed)
        self.model = PermutedLanguageModel(config.model, flexible if self.compiled else by_length)
        self.model.to(world.device)
        if self.compiled:
            torch._dynamo.config.recompile_limit = 64  # shapes of batches, of training and of evaluation
            for layer in self.model.encoder.layers:
                layer.compile(dynamic=False)
        self.ahead = Ahead(self._prepare)

    def losses(self, update: int) -> Iterator[tuple[Tensor, int]]:
        """Mean over the predicted tokens of the whole update, in nats."""
        batches, predicted = self.ahead[update]
        for batch in batches:
            yield self._loss(batch) / predicted, batch.text_tokens

    def evaluate(self) -> tuple[float, dict[str, float]]:
        """Perplexity over the predicted tokens of fixed texts with fixed permutations."""
        loss, count = 0.0, 0
        fixed = self.test_batches.fixed(self.config.test_texts, self.config.batch_tokens)
        for number, batch in enumerate(fixed):
            if number % self.world.size == self.world.rank:
                loss += self._loss(self._ready(batch)).item()
                count += batch.predicted
        loss, predicted = self.world.total(loss, count)
        if not predicted:
            raise InputError("test_texts: none of these texts is long enough to predict a token of")
        perplexity = math.exp(min(loss / predicted, 700.0))  # a diverged run must still be logged
        return perplexity, {"test_perplexity": perplexity}

    def describe(self, update: int) -> str:
        """The epoch and the first texts of an update, as lines of the corpus (or as blocks)."""
        epochs, texts = self.batches.update(update, 1)[0]
        kind = "block" if self.config.packing == "blocks" else f"line of {build.TRAIN}"
        some = ", ".join(str(text + 1) for text in texts[:5])
        return f"epoch {epochs[0]}, {len(texts)} texts ({kind} {some}, …)"

    def _prepare(self, update: int) -> tuple[list[Permuted], int]:
        """This process's batches of an update, and the predicted tokens of all processes."""
        size = self.world.size
        parts = self.batches.update(update, -(-self.config.accumulation // size) * size)
        mine = [self.batches.permuted(*part) for part in parts[self.world.rank :: size]]
        return [self._ready(batch) for batch in mine], self.batches.count(parts)

    def _ready(self, batch: Permuted) -> Permuted:
        if self.compiled:  # few shapes, and padding of at most 1/64 of a batch
            batch = fill_up(batch, max(BLOCK, self.config.batch_tokens // 64 // BLOCK * BLOCK))
        return batch if self.world.device.type == "cpu" else batch.pinned()

    def _loss(self, batch: Permuted) -> Tensor:
        device, precision = self.world.device, self.config.precision
        with torch.autocast(device.type, PRECISIONS[precision], enabled=precision != "fp32"):
            return self.model(batch.to(device))


def pretrain(config: PretrainConfig, world: World, stop: Stop) -> Path:
    """Do the whole run; returns the model folder with the best test perplexity."""
    out, revision = Path(config.out), run.git_revision()
    material = world.first_does(lambda: prepare(config, world.first))
    task = Pretraining(config, material.train, material.test, world)

    def keep_best(progress: Progress) -> None:
        facts = {
            "objective": "permuted language modelling",
            "corpus_sha256": material.corpus_hash,
            "corpus_counts": material.counts,
            **run.provenance(config, progress, world, revision),
            "epochs": round(progress.tokens / task.batches.tokens, 2),
            "test_perplexity": round(progress.best, 4),
        }
        info = checkpoint.ModelInfo(provenance=facts)
        card = run.card("Pretrained on code comments", facts)
        checkpoint.save(out / "model", task.model.encoder, material.tokenizer, info, card)

    identity = run.identity(config, material.corpus_hash, material.tokenizer.hash)
    loop.train(config, task, world, stop, identity, run.Log(config), keep_best)
    return out / "model"


def prepare(config: PretrainConfig, speaks: bool) -> Material:
    """Make corpus, vocabulary and shards in the run's folder, or find them there."""
    out = Path(config.out)
    tell = say if speaks else lambda line: None
    tell("corpus")
    corpus = build.build(config.corpus, out / "corpus")
    tell(f"  {corpus['counts']}")

    tell("vocabulary")
    corpus_hash = str(corpus["sha256"])
    name = f"{corpus_hash[:12]}-{config.model.vocab_size}"
    tokenizer = vocab.at(out / "vocabulary" / name, out / "corpus" / build.TRAIN, config.model.vocab_size)

    tell("shards")
    train, test = (
        shards.write(
            out / "corpus" / file, corpus_hash, tokenizer, config.model.max_length, out / "shards" / file
        )
        for file in (build.TRAIN, build.TEST)
    )
    tell(f"  {len(train.lengths):,} texts, {train.tokens:,} tokens")
    tell("training")
    return Material(tokenizer, train, test, corpus_hash, corpus["counts"])


if __name__ == "__main__":
    sys.exit(run.command(PretrainConfig, pretrain, "train.pretrain", __doc__, estimate))
