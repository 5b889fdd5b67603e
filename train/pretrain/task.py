"""Pretraining as a task for the trainer: its batches, its loss, its perplexity."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from simllm.errors import InputError
from simllm.model.encoder import Encoder
from train.corpus.build import TRAIN
from train.pretrain.attention import BLOCK, by_length, flexible
from train.pretrain.batches import Batches
from train.pretrain.objective import PermutedLanguageModel
from train.pretrain.permutation import Permuted, fill_up
from train.runtime.config import PretrainConfig
from train.runtime.distributed import World
from train.runtime.flops import training_flops
from train.runtime.prefetch import Ahead
from train.tokens.shards import Shards


class Pretraining:
    """The task: permuted or masked language modelling, judged by perplexity on held-out texts."""

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
            Batches(
                part.blocks(config.model.max_length) if config.packing == "blocks" else part,
                config.model.vocab_size,
                config.predict_probability,
                config.update_tokens,
                config.seed,
                config.objective == "masked",
            )
            for part in (train, test)
        )
        self.flops_per_token = training_flops(config.model, self.batches.shape()) / self.batches.tokens
        # FlexAttention is made for GPUs and knows no dropout of attention weights.
        self.compiled = world.device.type == "cuda" and not config.model.attention_probs_dropout_prob
        if not (self.test_batches.texts < config.test_texts).any():
            raise InputError("test_texts: none of these texts is long enough to predict a token of")
        torch.manual_seed(config.seed)
        self.model = PermutedLanguageModel(Encoder(config.model), flexible if self.compiled else by_length)
        if vectors is not None:
            self.model.encoder.embeddings.token.weight.data.copy_(torch.from_numpy(vectors))
        self.model.to(world.device)
        if self.compiled:
            torch._dynamo.config.recompile_limit = 64  # shapes of batches, of training and of evaluation
            torch._dynamo.config.fail_on_recompile_limit_hit = True  # uncompiled, nothing would fit
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
        parts = self.test_batches.fixed(self.config.test_texts, self.config.batch_tokens)
        for texts in parts[self.world.rank :: self.world.size]:
            batch = self.test_batches.permuted(np.zeros_like(texts), texts)
            loss += self._loss(self._ready(batch)).item()
            count += batch.predicted
        loss, predicted = self.world.total(loss, count)
        perplexity = math.exp(min(loss / predicted, 700.0))  # a diverged run must still be logged
        return perplexity, {"test_perplexity": perplexity}

    def in_words(self, loss: float) -> str:
        """Mean loss in nats, and the perplexity that it is."""
        return f"loss {loss:.3f}, perplexity {math.exp(min(loss, 700.0)):,.1f}"

    def describe(self, update: int) -> str:
        """The epoch and the first texts of an update, as lines of the corpus (or as blocks)."""
        epochs, texts = self.batches.update(update, 1)[0]
        kind = "block" if self.config.packing == "blocks" else f"line of {TRAIN}"
        some = ", ".join(str(text + 1) for text in texts[:5])
        return f"epoch {epochs[0]}, {len(texts)} texts ({kind} {some}, …)"

    def _prepare(self, update: int) -> tuple[list[Permuted], int]:
        """This process's batches of an update, and the predicted tokens of all processes."""
        size = self.world.size
        parts = self.batches.update(update, -(-self.config.accumulation // size) * size)
        mine = [part for part in parts[self.world.rank :: size] if len(part[1])]
        ready = [self._ready(self.batches.permuted(*part)) for part in mine]
        return ready, self.batches.count(parts)

    def _ready(self, batch: Permuted) -> Permuted:
        if self.compiled:  # few shapes; with 8,192 tokens a batch or more, 1% of padding on average
            batch = fill_up(batch, max(BLOCK, self.config.batch_tokens // 64 // BLOCK * BLOCK))
        return batch if self.world.device.type == "cpu" else batch.pinned()

    def _loss(self, batch: Permuted) -> Tensor:
        with self.world.autocast(self.config.precision):
            return self.model(batch.to(self.world.device))
