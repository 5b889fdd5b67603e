"""Pretraining, as a task for the training loop: the model, its batches, its loss and its perplexity.

The model is pretrained by permuted language modelling (as in MPNet) or by masked language modelling.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor

from simllm.errors import InputError
from simllm.model.encoder import Encoder
from train.corpus.corpus_folder import TRAIN
from train.pretrain.batches import PretrainingBatches
from train.pretrain.config import PretrainConfig
from train.pretrain.held_out_perplexity import compute_perplexity, measure_perplexity
from train.pretrain.language_model import PermutedLanguageModel
from train.pretrain.permutation import PermutedBatch, pad_streams
from train.pretrain.two_stream_attention import BLOCK_SIZE, flex_attention_over_texts, grouped_attention
from train.runtime.distributed import World
from train.runtime.flops import training_flops
from train.runtime.fsdp import shard
from train.runtime.gradient_exchange import LossPart
from train.runtime.mixed_precision import autocast
from train.runtime.prefetch import Prefetcher
from train.tokens.shards import Shards


class PretrainingTask:
    """The pretraining task: permuted or masked language modelling.

    The model is evaluated by its perplexity on held-out texts.

    Args:
        config: The configuration of the pretraining.
        train: The training texts.
        test: The held-out texts.
        world: The number of processes, and the rank and device of this process.
        vectors: (V, D) initial token embeddings for V tokens; None: random.

    Raises:
        InputError: No text is long enough to predict a token; or `compile` is set but the model cannot be
            compiled; or `sharding` is set but an update has too few tokens to give each process a text.
    """

    def __init__(
        self,
        config: PretrainConfig,
        train: Shards,
        test: Shards,
        world: World,
        vectors: np.ndarray | None = None,
    ) -> None:
        self.config, self.world = config, world
        self.batches, self.test_batches = (
            PretrainingBatches(
                part.blocks(config.model.max_length) if config.packing == "blocks" else part,
                config.model.vocab_size,
                config.predict_probability,
                config.update_tokens,
                config.seed,
                config.objective == "masked",
            )
            for part in (train, test)
        )
        self.flops_per_token = (
            training_flops(config.model, self.batches.text_shapes()) / self.batches.epoch_tokens
        )
        # FlexAttention is made for GPUs and does not support dropout of attention weights.
        self.compiled = world.device.type == "cuda" and not config.model.attention_probs_dropout_prob
        if config.compile and not self.compiled:  # the shapes of `grouped_attention` vary too much
            raise InputError("compile: pretraining needs a GPU and attention_probs_dropout_prob 0 for it")
        if not (self.test_batches.texts < config.test_texts).any():
            raise InputError("test_texts: none of these texts is long enough to predict a token of")
        torch.manual_seed(config.seed)
        self.model = PermutedLanguageModel(
            Encoder(config.model), flex_attention_over_texts if self.compiled else grouped_attention
        )
        if vectors is not None:
            self.model.encoder.embeddings.token.weight.data.copy_(torch.from_numpy(vectors))
        self.model.to(world.device)
        self.is_sharded = config.sharding and world.size > 1
        if self.is_sharded and self.update_batches * config.model.max_length > config.update_tokens:
            raise InputError("sharding: each process needs texts in each update; raise batch_tokens")
        if self.compiled:
            torch._dynamo.config.recompile_limit = 64  # shapes of batches, in training and evaluation
            torch._dynamo.config.fail_on_recompile_limit_hit = (
                True  # uncompiled, it would need too much memory
            )
            for layer in self.model.encoder.layers:
                layer.compile(dynamic=False)
        if self.is_sharded:
            shard(self.model, self.model.encoder.layers, world)
        self._prefetcher = Prefetcher(self._prepare_batches)

    @property
    def update_batches(self) -> int:
        """The number of batches in an update (optimizer step), over all processes.

        It is the configured number (`config.accumulation`), rounded up so that each process has equally many
        batches.
        """
        return -(-self.config.accumulation // self.world.size) * self.world.size

    def losses(self, update: int) -> Sequence[LossPart]:
        """Return functions that compute this process's share of the loss of one update (optimizer step).

        An update consists of batches, which are divided among the processes. The loss is the mean over the
        predicted tokens of all batches, in nats. Each batch contributes one term: the summed loss of its own
        predicted tokens, divided by the number of predicted tokens in the whole update. The terms of all
        batches add up to the loss.

        Args:
            update: The number of the update, from 0.

        Returns:
            One function without arguments for each batch of this process. The function returns the term of
            the batch (a scalar), and the number of text tokens in the batch.
        """
        batches, predicted = self._prefetcher[update]
        return [partial(self._loss_part, batch, predicted) for batch in batches]

    def _loss_part(self, batch: PermutedBatch, predicted: int) -> tuple[Tensor, int]:
        """Compute the loss on one batch of an update (optimizer step).

        The losses of all predicted tokens in the batch are added, and the sum is divided by `predicted`.

        Args:
            batch: The batch.
            predicted: Number of predicted tokens in all batches of the update.

        Returns:
            The loss in nats, a scalar, and the number of text tokens in the batch.
        """
        return self._loss(batch) / predicted, batch.text_tokens

    def evaluate(self) -> tuple[float, dict[str, float]]:
        """Compute the perplexity on the held-out texts.

        Every call uses the same texts, and the same random order of the tokens in each text.

        Returns:
            The perplexity, and a dictionary for the log, with the perplexity under `test_perplexity`.
        """
        perplexity = measure_perplexity(
            self.test_batches,
            lambda batch: self._loss(self._pad_and_pin(batch)).item(),
            self.world,
            texts=self.config.test_texts,
            batch_tokens=self.config.batch_tokens,
            is_sharded=self.is_sharded,
        )
        return perplexity, {"test_perplexity": perplexity}

    def format_loss(self, loss: float) -> str:
        """Format the mean loss per predicted token (in nats) and the perplexity for the progress bar."""
        return f"loss {loss:.3f}, perplexity {compute_perplexity(loss):,.1f}"

    def describe_texts(self, update: int) -> str:
        """Describe the texts in an update (optimizer step), so that a bad text can be found.

        The description has the epoch (from 0), the number of texts, and the first five texts, given by their
        line numbers in the corpus (from 1). If texts are packed into blocks (inputs of full length), the
        numbers of the first five blocks (from 1) are given instead.
        """
        epochs, texts = self.batches.texts_of_update(update, 1)[0]
        kind = "block" if self.config.packing == "blocks" else f"line of {TRAIN}"
        first = ", ".join(str(text + 1) for text in texts[:5])
        return f"epoch {epochs[0]}, {len(texts)} texts ({kind} {first}, …)"

    def _prepare_batches(self, update: int) -> tuple[list[PermutedBatch], int]:
        """Make this process's batches for an update (optimizer step).

        Args:
            update: The number of the update, from 0.

        Returns:
            The batches, and the number of predicted tokens in the batches of all processes.
        """
        parts = self.batches.texts_of_update(update, self.update_batches)
        own = [part for part in parts[self.world.rank :: self.world.size] if len(part[1])]
        batches = [self._pad_and_pin(self.batches.make_batch(*part)) for part in own]
        return batches, self.batches.count_predicted(parts)

    def _pad_and_pin(self, batch: PermutedBatch) -> PermutedBatch:
        """Pad a batch if the model is compiled, and copy it to pinned memory if the model is on a GPU."""
        if self.compiled:  # few shapes; with 8,192 tokens per batch or more, 1% is padding on average
            blocks = max(1, self.config.batch_tokens // 64 // BLOCK_SIZE)
            batch = pad_streams(batch, blocks * BLOCK_SIZE)
        return batch if self.world.device.type == "cpu" else batch.pinned()

    def _loss(self, batch: PermutedBatch) -> Tensor:
        with autocast(self.world.device, self.config.precision):
            return self.model(batch.to(self.world.device))
