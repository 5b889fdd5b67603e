"""Pretrain an encoder: sources -> corpus -> vocabulary -> shards -> updates -> model folder.

    python -m train.pretrain configs/debug.yaml
    python -m train.pretrain configs/mini.yaml out=runs/mine 'corpus.sources=[my/*.jsonl.gz]'

Every step leaves its result in the run's folder and is not repeated; a run that was
stopped or killed goes on when the same command is given again.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

from simllm import checkpoint
from simllm.errors import InputError
from simllm.tokenizer import Tokenizer
from train import loop, run, shards, vocab
from train.batches import Batches
from train.config import PretrainConfig
from train.corpus import build
from train.objective import PermutedLanguageModel
from train.run import say
from train.state import Progress


class Pretraining:
    """The task: permuted language modelling, judged by perplexity on held-out texts."""

    def __init__(self, config: PretrainConfig, train_shard: shards.Shard, test_shard: shards.Shard) -> None:
        self.config = config
        self.batches, self.test_batches = (
            Batches(
                shard,
                config.model.vocab_size,
                config.predict_probability,
                config.batch_tokens,
                config.seed,
            )
            for shard in (train_shard, test_shard)
        )
        torch.manual_seed(config.seed)
        self.model = PermutedLanguageModel(config.model)

    def losses(self, update: int) -> Iterator[tuple[Tensor, int]]:
        """Mean over the predicted tokens of all batches of the update, in nats."""
        first = update * self.config.accumulation
        batches = [self.batches[first + i] for i in range(self.config.accumulation)]
        predicted = sum(batch.targets.numel() for batch in batches)
        for batch in batches:
            with torch.autocast("cpu", torch.bfloat16, enabled=self.config.bf16):
                loss = self.model.loss(batch) / predicted
            yield loss, batch.text_tokens

    def evaluate(self) -> tuple[float, dict[str, float]]:
        """Perplexity over the predicted tokens of fixed texts with fixed permutations."""
        total, count = 0.0, 0
        for batch in self.test_batches.fixed(self.config.test_texts):
            with torch.autocast("cpu", torch.bfloat16, enabled=self.config.bf16):
                total += self.model.loss(batch).item()
            count += batch.targets.numel()
        if not count:
            raise InputError("test_texts: none of these texts is long enough to predict a token of")
        perplexity = math.exp(min(total / count, 700.0))  # a diverged run must still be logged
        return perplexity, {"test_perplexity": perplexity}


def pretrain(config: PretrainConfig) -> Path:
    """Do the whole run; returns the model folder with the best test perplexity."""
    out, revision = Path(config.out), run.git_revision()

    say("corpus")
    corpus = build.build(config.corpus, out / "corpus")
    say(f"  {corpus['counts']}")

    say("vocabulary")
    corpus_hash = str(corpus["sha256"])
    name = f"{corpus_hash[:12]}-{config.model.vocab_size}"
    tokenizer = vocabulary(out / "corpus" / build.TRAIN, config.model.vocab_size, out / "vocabulary" / name)

    say("shards")
    train_shard, test_shard = (
        shards.write(
            out / "corpus" / file, corpus_hash, tokenizer, config.model.max_length, out / "shards" / file
        )
        for file in (build.TRAIN, build.TEST)
    )
    say(f"  {len(train_shard.lengths):,} texts, {len(train_shard.ids):,} tokens")

    say("training")
    task = Pretraining(config, train_shard, test_shard)

    def keep_best(progress: Progress) -> None:
        facts = {
            "objective": "permuted language modelling",
            "corpus_sha256": corpus_hash,
            "corpus_counts": corpus["counts"],
            **run.provenance(config, progress, revision),
            "epochs": round(progress.tokens / task.batches.tokens, 2),
            "test_perplexity": round(progress.best, 4),
        }
        info = checkpoint.ModelInfo(provenance=facts)
        card = run.card("Pretrained on code comments", facts)
        checkpoint.save(out / "model", task.model.encoder, tokenizer, info, card)

    loop.train(
        config,
        task,
        run.identity(config, corpus_hash, tokenizer.hash),
        lambda line: run.record(out / "log.jsonl", line),
        keep_best,
    )
    return out / "model"


def vocabulary(texts: Path, size: int, folder: Path) -> Tokenizer:
    """Learn the vocabulary on the training texts, or load what `folder` holds from before."""
    file = folder / "tokenizer.json"
    if not file.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        with texts.open(encoding="ascii") as lines:
            vocab.learn((line.rstrip("\n") for line in lines), size, folder / "sentencepiece.model")
        partial = folder / "tokenizer.partial"
        vocab.convert(folder / "sentencepiece.model").save(str(partial))
        partial.rename(file)
    return Tokenizer.load(file)


if __name__ == "__main__":
    sys.exit(run.command(PretrainConfig, pretrain, "train.pretrain", __doc__))
