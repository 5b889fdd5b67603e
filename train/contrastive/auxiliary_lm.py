"""Permuted language modelling, as in MPNet, as an auxiliary task of contrastive training."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from simllm.errors import InputError
from simllm.io import reading
from simllm.io.output_folder import OutputFolder
from simllm.model.saved_model import SavedModel
from simllm.text_cleaning import clean
from train.contrastive.config import LanguageModelConfig
from train.corpus.decontaminate import ExcludedTexts
from train.corpus.sources import match_files
from train.pretrain.batches import PretrainingBatches
from train.pretrain.language_model import PermutedLanguageModel
from train.pretrain.permutation import PermutedBatch
from train.runtime.batching import Prefetcher, combined_seed
from train.runtime.config import TrainingConfig
from train.runtime.distributed import World
from train.runtime.gradients import LossPart, autocast
from train.runtime.log import print_progress
from train.tokens import shards

_SEED = 2  # a seed of its own, or its dropout would repeat that of the run's other losses


class AuxiliaryLanguageModel:
    """Permuted language modelling with the encoder that is trained contrastively.

    The tokenized texts are stored in the run folder, from which a resumed run loads them.
    """

    def __init__(
        self,
        config: LanguageModelConfig,
        run: TrainingConfig,
        start: SavedModel,
        excluded: ExcludedTexts,
        world: World,
    ) -> None:
        self.config, self.world = config, world
        self.precision, self.seed = run.precision, combined_seed(run.seed, _SEED)
        size = start.encoder.config
        fewest = max(size.max_length, world.size)
        # With fewer tokens, some updates would have no text.
        if config.update_tokens < fewest:
            raise InputError(f"language_model: update_tokens must be at least {fewest}")
        if world.is_first:
            print_progress(f"language modelling on {config.texts}")
        texts, identity = _write_texts(config.texts, excluded, Path(run.out) / "language-model")
        ids = shards.write_or_load(texts, identity, start.tokenizer, size.max_length, texts.parent / "shards")
        try:
            self._batches = PretrainingBatches(
                ids, size.vocab_size, config.predict_probability, config.update_tokens, self.seed
            )
        except InputError as error:
            raise InputError(f"language_model: {error}") from None
        # The layer that predicts tokens starts at random, because a model folder does not store it.
        torch.manual_seed(run.seed)
        self.model = PermutedLanguageModel(start.encoder).to(world.device)
        self._prefetcher = Prefetcher(self._make_batch)

    def losses(self, update: int) -> Sequence[LossPart]:
        """Return this process's part of the loss of one update, or nothing if this process has no texts.

        The loss is the mean cross entropy of the tokens that all processes predict, in nats, times its
        weight.
        """
        batch, predicted = self._prefetcher[update]
        return [partial(self._loss, update, batch, predicted)] if batch else []

    def _loss(self, update: int, batch: PermutedBatch, predicted: int) -> tuple[Tensor, int]:
        """Compute this process's summand of the loss, and the number of tokens in its texts."""
        # For dropout, which differs between the processes.
        torch.manual_seed(combined_seed(self.seed, update, self.world.rank))
        with autocast(self.world.device, self.precision):
            loss = self.model(batch.to(self.world.device))
        # `loss` is a sum. Divided by the count of all processes, the summands add up to the mean over all
        # tokens.
        return self.config.weight * loss / predicted, batch.text_tokens

    def _make_batch(self, update: int) -> tuple[PermutedBatch | None, int]:
        """Make this process's batch (None: no texts), and count the tokens that all processes predict."""
        parts = self._batches.texts_of_update(update, self.world.size)
        own = parts[self.world.rank]
        return self._batches.make_batch(*own) if len(own[1]) else None, self._batches.count_predicted(parts)


def _write_texts(pattern: str, excluded: ExcludedTexts, folder: Path) -> tuple[Path, str]:
    """Clean texts, write them to `folder`/HASH/texts.txt, and return this path and their whole SHA-256."""
    cleaned = (clean(line) for file in match_files(pattern) for _, line in reading.read_lines(file))
    kept = "".join(f"{text}\n" for text in cleaned if text and text not in excluded)
    if not kept:
        raise InputError(f"language_model: no text of {pattern!r} is left")
    identity = hashlib.sha256(kept.encode()).hexdigest()
    # Changed texts get another folder, so that shards of other texts are never reused.
    out = folder / identity[:12] / "texts.txt"
    try:
        exists = out.is_file() and out.read_bytes() == kept.encode()
    except OSError as error:
        raise InputError(f"{out}: cannot be read ({error.strerror})") from None
    if not exists:
        OutputFolder(out.parent, "training texts").own()
        OutputFolder(out.parent).write(out.name, kept)
    return out, identity
