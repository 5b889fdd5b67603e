"""Language modelling beside the contrastive stage: what was learned first is not forgotten."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

from simllm import files
from simllm.checkpoint import Checkpoint
from simllm.errors import InputError
from train import shards
from train.ahead import Ahead
from train.batches import Batches, seed_of
from train.config import LanguageModelConfig, Optimization
from train.corpus.evaluated import Evaluated
from train.corpus.sources import matching
from train.distributed import World
from train.objective import PermutedLanguageModel
from train.permute import Permuted

_USE = 2  # of the run's seed, among others


class Beside:
    """Permuted language modelling, by a new head on the encoder that is being trained."""

    def __init__(
        self,
        config: LanguageModelConfig,
        run: Optimization,
        start: Checkpoint,
        excluded: Evaluated,
        world: World,
    ) -> None:
        """Tokenize the texts, but for those in `excluded`, in the run's folder, or find them there."""
        self.config, self.world = config, world
        self.precision, self.seed = run.precision, run.seed
        encoder = start.encoder
        texts, identity = _texts(config.texts, excluded, Path(run.out) / "language-model")
        ids = shards.write(
            texts, identity, start.tokenizer, encoder.config.max_length, texts.parent / "shards"
        )
        self._batches = Batches(
            ids,
            encoder.config.vocab_size,
            config.predict_probability,
            config.batch_tokens,
            seed_of(run.seed, _USE),
        )
        torch.manual_seed(run.seed)
        self.model = PermutedLanguageModel(encoder).to(world.device)
        self._ahead = Ahead(self._make)

    def losses(self, update: int) -> Iterator[tuple[Tensor, int]]:
        """This process's part of the weighted mean over an update's predicted tokens, in nats."""
        batch, predicted = self._ahead[update]
        if batch:
            torch.manual_seed(seed_of(self.seed, update, self.world.rank, _USE))  # dropout, cached or not
            with self.world.autocast(self.precision):
                loss = self.model(batch.to(self.world.device))
            yield self.config.weight * loss / predicted, batch.text_tokens

    def _make(self, update: int) -> tuple[Permuted | None, int]:
        parts = self._batches.update(update, self.world.size)
        mine = parts[self.world.rank]
        return self._batches.permuted(*mine) if len(mine[1]) else None, self._batches.count(parts)


def _texts(pattern: str, excluded: Evaluated, folder: Path) -> tuple[Path, str]:
    """A file of the texts that may be trained on, and what identifies it."""
    hashed = hashlib.sha256(excluded.digest.encode())
    for file in matching(pattern):
        with file.open("rb") as data:
            hashed.update(hashlib.file_digest(data, "sha256").digest())
    out = folder / hashed.hexdigest()[:12] / "texts.txt"
    if not out.is_file():
        lines = (line for file in matching(pattern) for _, line in files.lines(file))
        kept = [line for line in lines if line and line not in excluded]
        if not kept:
            raise InputError(f"language_model: no text of {pattern!r} is left")
        out.parent.mkdir(parents=True, exist_ok=True)
        files.write(out, "".join(line + "\n" for line in kept))
    return out, hashed.hexdigest()
