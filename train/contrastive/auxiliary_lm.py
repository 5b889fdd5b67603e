"""Language modelling beside the contrastive stage: the encoder goes on predicting, by a new head."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

from simllm.errors import InputError
from simllm.io import files, folders
from simllm.model.checkpoint import Checkpoint
from simllm.text import clean
from train.corpus.decontaminate import Evaluated
from train.corpus.sources import matching
from train.pretrain.batches import Batches, seed_of
from train.pretrain.objective import PermutedLanguageModel
from train.pretrain.permutation import Permuted
from train.runtime.config import LanguageModelConfig, Optimization
from train.runtime.distributed import World
from train.runtime.log import say
from train.runtime.prefetch import Ahead
from train.tokens import shards

_SEED = 2  # apart from the seeds of the pairs and of the rated


class Beside:
    """Permuted language modelling; its head starts anew, as a model folder has none."""

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
        self.precision, self.seed = run.precision, seed_of(run.seed, _SEED)
        size = start.encoder.config
        fewest = max(size.max_length, world.size)
        if config.update_tokens < fewest:  # so that every update has a text
            raise InputError(f"language_model: update_tokens must be at least {fewest}")
        if world.first:
            say(f"language modelling on {config.texts}")
        texts, identity = _texts(config.texts, excluded, Path(run.out) / "language-model")
        ids = shards.write(texts, identity, start.tokenizer, size.max_length, texts.parent / "shards")
        try:
            self._batches = Batches(
                ids, size.vocab_size, config.predict_probability, config.update_tokens, self.seed
            )
        except InputError as error:
            raise InputError(f"language_model: {error}") from None
        torch.manual_seed(run.seed)
        self.model = PermutedLanguageModel(start.encoder).to(world.device)
        self._ahead = Ahead(self._make)

    def losses(self, update: int) -> Iterator[tuple[Tensor, int]]:
        """This process's part of the weighted mean over an update's predicted tokens, in nats."""
        batch, predicted = self._ahead[update]
        if batch:
            torch.manual_seed(seed_of(self.seed, update, self.world.rank))  # dropout, cached or not
            with self.world.autocast(self.precision):
                loss = self.model(batch.to(self.world.device))
            yield self.config.weight * loss / predicted, batch.text_tokens

    def _make(self, update: int) -> tuple[Permuted | None, int]:
        parts = self._batches.update(update, self.world.size)
        mine = parts[self.world.rank]
        return self._batches.permuted(*mine) if len(mine[1]) else None, self._batches.count(parts)


def _texts(pattern: str, excluded: Evaluated, folder: Path) -> tuple[Path, str]:
    """Write the texts that may be trained on, cleaned, to a file in `folder`, unless it is there.

    Returns:
        The file, and the SHA-256 of its texts.
    """
    cleaned = (clean(line) for file in matching(pattern) for _, line in files.lines(file))
    kept = "".join(f"{text}\n" for text in cleaned if text and text not in excluded)
    if not kept:
        raise InputError(f"language_model: no text of {pattern!r} is left")
    identity = hashlib.sha256(kept.encode()).hexdigest()
    out = folder / identity[:12] / "texts.txt"
    try:
        there = out.is_file() and out.read_bytes() == kept.encode()
    except OSError as error:
        raise InputError(f"{out}: cannot be read ({error.strerror})") from None
    if not there:
        folders.own(out.parent)
        folders.add(out.parent, out.name, kept)
    return out, identity
