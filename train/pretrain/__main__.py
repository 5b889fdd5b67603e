"""Pretrain an encoder: sources -> corpus -> vocabulary -> shards -> updates -> model folder.

    python -m train.pretrain configs/debug.yaml
    python -m train.pretrain configs/mini.yaml out=runs/mine 'corpus.sources=[my/*.jsonl.gz]'
    torchrun --nproc_per_node 4 -m train.pretrain configs/base.yaml

Every step leaves its result in the run's folder and is not repeated; a run that was
stopped or killed goes on when the same command is given again, also with another number
of processes. Exit status: 0 done, 1 diverged, 2 bad input, 75 or 130 stopped by a signal.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from simllm.model import checkpoint
from simllm.model.tokenizer import Tokenizer
from train.corpus import build
from train.pretrain.estimate import estimate
from train.pretrain.task import Pretraining
from train.runtime import command, loop
from train.runtime.config import PretrainConfig
from train.runtime.distributed import World
from train.runtime.log import log_of, say
from train.runtime.signals import Stop
from train.runtime.state import Progress
from train.tokens import shards, token_vectors, vocabulary
from train.tokens.shards import Shards


@dataclass(frozen=True)
class Material:
    """What is trained on: a vocabulary, and tokenized texts to learn from and to test with."""

    tokenizer: Tokenizer
    train: Shards
    test: Shards
    vectors: np.ndarray | None  # what the token vectors start from; None: random numbers
    corpus_hash: str
    counts: object


def pretrain(config: PretrainConfig, world: World, stop: Stop) -> Path:
    """Do the whole run; returns the model folder with the best test perplexity."""
    out, revision = Path(config.out), command.git_revision()
    log = world.first_does(lambda: log_of(config, world))
    material = world.first_does(lambda: prepare(config, world.first))
    task = Pretraining(config, material.train, material.test, world, material.vectors)
    if world.first and world.device.type == "cuda" and not task.compiled:
        say("attention_probs_dropout_prob is not 0: the GPU's fast attention is not used")

    def keep_best(progress: Progress) -> None:
        facts = {
            "objective": f"{config.objective} language modelling",
            "corpus_sha256": material.corpus_hash,
            "corpus_counts": material.counts,
            **command.provenance(config, progress, world, revision),
            "epochs": round(progress.tokens / task.batches.tokens, 2),
            "test_perplexity": round(progress.best, 4),
        }
        info = checkpoint.ModelInfo(provenance=facts)
        card = command.card("Pretrained on code comments", facts)
        checkpoint.save(out / "model", task.model.encoder, material.tokenizer, info, card)

    identity = command.identity(config, material.corpus_hash, material.tokenizer.hash)
    loop.train(config, task, world, stop, identity, log, keep_best)
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
    tokenizer = vocabulary.at(
        out / "vocabulary" / name, out / "corpus" / build.TRAIN, config.model.vocab_size
    )

    tell("shards")
    train, test = (
        shards.write(
            out / "corpus" / file, corpus_hash, tokenizer, config.model.max_length, out / "shards" / file
        )
        for file in (build.TRAIN, build.TEST)
    )
    tell(f"  {len(train.lengths):,} texts, {train.tokens:,} tokens; {train.truncated:,} texts were cut")
    vectors, model = None, config.model
    if config.token_vectors == "ppmi":
        tell("token vectors")
        name = f"{corpus_hash[:12]}-{tokenizer.hash}-{model.max_length}-{model.hidden_size}"
        vectors = token_vectors.at(out / "vectors" / name, train, model.vocab_size, model.hidden_size)
        vectors *= model.initializer_range
    tell("training")
    return Material(tokenizer, train, test, vectors, corpus_hash, corpus["counts"])


if __name__ == "__main__":
    sys.exit(command.command(PretrainConfig, pretrain, "train.pretrain", __doc__, estimate))
