"""The auxiliary language model: in contrastive training, the encoder also predicts tokens of texts.

The task is permuted language modelling, as in MPNet.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from simllm.errors import InputError
from simllm.io import read_lines
from simllm.io.output_folder import OutputFolder
from simllm.model.saved_model import SavedModel
from simllm.text_cleaning import clean
from train.contrastive.config import LanguageModelConfig
from train.corpus.decontaminate import ExcludedTexts
from train.corpus.sources import match_files
from train.pretrain.batches import PretrainingBatches
from train.pretrain.language_model import PermutedLanguageModel
from train.pretrain.permutation import PermutedBatch
from train.runtime.config import TrainingConfig
from train.runtime.distributed import World
from train.runtime.gradient_exchange import LossPart
from train.runtime.mixed_precision import autocast
from train.runtime.prefetch import Prefetcher
from train.runtime.seeded_random_numbers import combined_seed
from train.runtime.training_log_and_tensorboard import print_progress
from train.tokens import shards

_SEED = 2  # makes the seed differ from the seeds for choosing positive pairs and rated pairs


class AuxiliaryLanguageModel:
    """Auxiliary task of contrastive training: permuted language modelling with the same encoder.

    As in MPNet, the tokens of a text are put in random order, and the model predicts the last few tokens of
    this order. The model still gets the original position of each token. The layer that predicts tokens
    starts from random weights, because the folder of the initial model does not store this layer.
    """

    def __init__(
        self,
        config: LanguageModelConfig,
        run: TrainingConfig,
        start: SavedModel,
        excluded: ExcludedTexts,
        world: World,
    ) -> None:
        """Tokenize the training texts, and make the language model.

        The tokenized texts are stored in the run folder. A resumed run loads them from there.

        Args:
            config: The settings of the language modelling.
            run: The configuration of the run.
            start: The initial model, with its encoder and tokenizer.
            excluded: Evaluation texts, which must not be trained on.
            world: The processes of the run, and the device of this process.

        Raises:
            InputError: A text file cannot be read, no text is left, or the setting `update_tokens` (tokens of
                text per update) is too small.
        """
        self.config, self.world = config, world
        self.precision, self.seed = run.precision, combined_seed(run.seed, _SEED)
        size = start.encoder.config
        fewest = max(size.max_length, world.size)
        if config.update_tokens < fewest:  # some updates would have no text
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
        torch.manual_seed(run.seed)
        self.model = PermutedLanguageModel(start.encoder).to(world.device)
        self._prefetcher = Prefetcher(self._make_batch)

    def losses(self, update: int) -> Sequence[LossPart]:
        """Prepare the computation of this process's share of the loss of one update (optimizer step).

        The loss of an update is the mean cross entropy of the predicted tokens, in nats, times the weight of
        this loss in the configuration. Each process predicts some of the tokens, and computes their share of
        the loss. The shares of all processes add up to the loss.

        Args:
            update: Number of the update, from 0.

        Returns:
            A list with one function, or an empty list if this process has no texts. The function takes no
            arguments. It returns this process's share of the loss (a scalar), and the number of tokens in its
            texts.
        """
        batch, predicted = self._prefetcher[update]
        return [partial(self._loss, update, batch, predicted)] if batch else []

    def _loss(self, update: int, batch: PermutedBatch, predicted: int) -> tuple[Tensor, int]:
        """Compute this process's share of the language-model loss of one update (optimizer step).

        The share is w · S / `predicted`. Here w is the weight of this loss in the configuration, and S is the
        sum of the cross entropies of the tokens that this process predicts.

        Args:
            update: Number of the update, from 0; it seeds the dropout.
            batch: The texts of this process.
            predicted: Number of tokens that all processes together predict in this update.

        Returns:
            The share of the loss, a scalar, and the number of text tokens in `batch`.
        """
        torch.manual_seed(combined_seed(self.seed, update, self.world.rank))  # for dropout
        with autocast(self.world.device, self.precision):
            loss = self.model(batch.to(self.world.device))
        return self.config.weight * loss / predicted, batch.text_tokens

    def _make_batch(self, update: int) -> tuple[PermutedBatch | None, int]:
        """Make this process's batch of texts for one update (optimizer step).

        Args:
            update: Number of the update, from 0.

        Returns:
            A pair: the batch, or None if this process gets no texts in this update; and the number of tokens
            that all processes together predict in this update.
        """
        parts = self._batches.texts_of_update(update, self.world.size)
        own = parts[self.world.rank]
        return self._batches.make_batch(*own) if len(own[1]) else None, self._batches.count_predicted(parts)


def _write_texts(pattern: str, excluded: ExcludedTexts, folder: Path) -> tuple[Path, str]:
    """Clean the texts of some files, and write all of them to one file, one text per line.

    The path of the written file is `folder`/HASH/texts.txt. HASH is the start of the SHA-256 of the texts. If
    this file already has the same texts, it is not written again.

    Args:
        pattern: Path or glob pattern of files with one text per line.
        excluded: Evaluation texts, which are left out.
        folder: The folder that contains the folder HASH.

    Returns:
        The path of the written file, and the SHA-256 of its texts.

    Raises:
        InputError: A file cannot be read or written, or no text is left.
    """
    cleaned = (clean(line) for file in match_files(pattern) for _, line in read_lines.lines(file))
    kept = "".join(f"{text}\n" for text in cleaned if text and text not in excluded)
    if not kept:
        raise InputError(f"language_model: no text of {pattern!r} is left")
    identity = hashlib.sha256(kept.encode()).hexdigest()
    out = folder / identity[:12] / "texts.txt"
    try:
        exists = out.is_file() and out.read_bytes() == kept.encode()
    except OSError as error:
        raise InputError(f"{out}: cannot be read ({error.strerror})") from None
    if not exists:
        OutputFolder(out.parent, "training texts").own()
        OutputFolder(out.parent).write(out.name, kept)
    return out, identity
