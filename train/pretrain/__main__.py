"""Pretrain an encoder, from the sources of a corpus to a model folder.

    python -m train.pretrain configs/debug.yaml
    python -m train.pretrain configs/mini.yaml out=runs/mine 'corpus.sources=[my/*.jsonl.gz]'
    torchrun --nproc_per_node 4 -m train.pretrain configs/base.yaml

The steps are: build the corpus, learn the vocabulary, write token shards (token ids on disk), train.
Results are kept in the folder `out`. To resume a training that was stopped or killed, rerun the same
command; the number of processes may change. Exit status: 0 done, 1 diverged, 2 bad input, 75 or 130
stopped by a signal.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from simllm.model import saved_model
from simllm.model.tokenizer import Tokenizer
from train.corpus import build
from train.pretrain.config import PretrainConfig
from train.pretrain.cost import estimate
from train.pretrain.task import PretrainingTask
from train.runtime import loop, training_run
from train.runtime.checkpoint import Progress
from train.runtime.distributed import World
from train.runtime.log import open_log, print_progress
from train.runtime.provenance import git_revision, training_card, training_provenance
from train.runtime.signals import StopRequest
from train.runtime.training_run import run_training
from train.tokens import shards, token_vectors, vocabulary
from train.tokens.shards import Shards


@dataclass(frozen=True)
class PretrainingData:
    """What a pretraining run needs.

    Attributes:
        test: The held-out texts.
        vectors: (V, D) initial token embeddings for V tokens; None: random.
        counts: The texts that were kept and left out when the corpus was built.
    """

    tokenizer: Tokenizer
    train: Shards
    test: Shards
    vectors: np.ndarray | None
    corpus_hash: str
    counts: object


def pretrain(config: PretrainConfig, world: World, stop: StopRequest) -> Path:
    """Pretrain an encoder, or resume the run; return the model folder with the lowest held-out perplexity."""
    out, revision = Path(config.out), git_revision()
    log = world.first_then_others(lambda: open_log(config, world))
    data = world.first_then_others(lambda: prepare_data(config, verbose=world.is_first))
    task = PretrainingTask(config, data.train, data.test, world, data.vectors)
    if world.is_first and world.device.type == "cuda" and not task.compiled:
        print_progress("attention_probs_dropout_prob is not 0: the GPU's fast attention is not used")

    def save_best(progress: Progress) -> None:
        facts = {
            "objective": f"{config.objective} language modelling",
            "corpus_sha256": data.corpus_hash,
            "corpus_counts": data.counts,
            **training_provenance(config, progress, world, revision),
            "epochs": round(progress.tokens / task.batches.epoch_tokens, 2),
            "test_perplexity": round(progress.best, 4),
        }
        info = saved_model.ModelInfo(provenance=facts)
        card = training_card("Pretrained on code comments", facts)
        saved_model.save(out / "model", task.model.encoder, data.tokenizer, info, card, keep_edits=False)

    identity = training_run.identity(config, data.corpus_hash, data.tokenizer.hash)
    loop.train(config, task, world, stop, identity, log, save_best)
    return out / "model"


def prepare_data(config: PretrainConfig, verbose: bool) -> PretrainingData:
    """Build the corpus, the vocabulary and the shards, or load those that `config.out` has already."""
    out = Path(config.out)
    report = print_progress if verbose else lambda line: None
    report("corpus")
    corpus = build.build(config.corpus, out / "corpus")
    report(f"  {corpus['counts']}")

    report("vocabulary")
    corpus_hash = str(corpus["sha256"])
    name = f"{corpus_hash[:12]}-{config.model.vocab_size}"
    tokenizer = vocabulary.load_or_learn(
        out / "vocabulary" / name, out / "corpus" / build.TRAIN, config.model.vocab_size
    )

    report("shards")
    train, test = (
        shards.write_or_load(
            out / "corpus" / file, corpus_hash, tokenizer, config.model.max_length, out / "shards" / file
        )
        for file in (build.TRAIN, build.TEST)
    )
    report(f"  {len(train.lengths):,} texts, {train.tokens:,} tokens; {train.truncated:,} texts were cut")
    vectors, model = None, config.model
    if config.token_vectors == "ppmi":
        report("token vectors")
        name = f"{corpus_hash[:12]}-{tokenizer.hash}-{model.max_length}-{model.hidden_size}"
        vectors = token_vectors.load_or_compute(
            out / "vectors" / name, train, model.vocab_size, model.hidden_size
        )
        # The vectors have a standard deviation of 1.
        vectors *= model.initializer_range
    report("training")
    return PretrainingData(tokenizer, train, test, vectors, corpus_hash, corpus["counts"])


if __name__ == "__main__":
    sys.exit(run_training(PretrainConfig, pretrain, "train.pretrain", __doc__, estimate))
