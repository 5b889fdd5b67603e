"""Pretraining as a task for the training loop: the model, its batches, its loss and its perplexity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor

from simllm.array_types import Ints
from simllm.errors import InputError
from simllm.model.config import ModelConfig
from simllm.model.network import Encoder
from train.corpus.config import TRAIN
from train.pretrain.attention import MakeAttention, grouped_attention
from train.pretrain.batches import PretrainingBatches
from train.pretrain.config import PretrainConfig
from train.pretrain.language_model import PermutedLanguageModel
from train.pretrain.permutation import PermutedBatch, by_position, pad_streams
from train.pretrain.perplexity_plot import compute_perplexity
from train.runtime.batching import Prefetcher
from train.runtime.distributed import World, shard
from train.runtime.gradients import LossPart, autocast
from train.tokens.shards import Shards


def training_flops(config: ModelConfig, shape: Ints) -> float:
    """Count the floating-point operations of training the permuted language model on B texts once.

    `shape` is (B, 2): the number of tokens n of each text, and how many of them, m, the model predicts. The
    encoder has two streams of vectors, as in MPNet. The content stream has n + m: one for each token, and one
    for a mask token at each predicted position. The query stream has m, from which the tokens are predicted.

    A multiply-add counts as two operations. With hidden size D, intermediate size F and vocabulary size V,
    the forward pass costs:

        8 D² + 4 D F + 4 D n    for each content vector in each layer
        4 D² + 4 D F + 4 D n    for each query vector in each layer
        2 D² + 2 D V            for each predicted token

    The backward pass costs twice the forward pass. Padding, embeddings, norms and the optimizer are not
    counted.
    """
    hidden, inner = config.hidden_size, config.intermediate_size
    length, predicted = shape[:, 0].astype(float), shape[:, 1].astype(float)
    content, queries = length + predicted, predicted
    layer = 2 * content * (4 * hidden**2 + 2 * hidden * inner)
    layer += 2 * queries * (2 * hidden**2 + 2 * hidden * inner)
    layer += 4 * hidden * (content + queries) * length
    head = 2 * predicted * (hidden**2 + hidden * config.vocab_size)
    return float(3 * (config.num_hidden_layers * layer + head).sum())


def measure_perplexity(
    batches: PretrainingBatches,
    loss_of: Callable[[PermutedBatch], float],
    world: World,
    *,
    texts: int,
    batch_tokens: int,
    is_sharded: bool,
) -> float:
    """Measure the perplexity on the first `texts` held-out texts, always in the same random order of tokens.

    `loss_of` sums the loss of a batch over its predicted tokens, in nats.
    """
    loss, count = 0.0, 0
    parts = batches.evaluation_texts(texts, batch_tokens)
    # A sharded model needs all processes at the same time, so that each computes all batches.
    for part in parts if is_sharded else parts[world.rank :: world.size]:
        batch = batches.make_batch(np.zeros_like(part), part)
        loss += loss_of(batch)
        count += batch.predicted
    loss, predicted = world.sum_values(loss, count)
    return compute_perplexity(loss / predicted)


class PretrainingTask:
    """Permuted or masked language modelling, evaluated by the perplexity on held-out texts.

    `vectors` are (V, D) initial token embeddings; None: random. `start` is the encoder to continue from.
    """

    def __init__(
        self,
        config: PretrainConfig,
        train: Shards,
        test: Shards,
        world: World,
        vectors: np.ndarray | None = None,
        start: Encoder | None = None,
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
        self.compiled = world.device.type == "cuda"
        # The shapes of `grouped_attention` vary too much to be compiled.
        if config.compile and not self.compiled:
            raise InputError("compile: pretraining needs a GPU for it")
        if not (self.test_batches.texts < config.test_texts).any():
            raise InputError("test_texts: none of these texts is long enough to predict a token of")
        torch.manual_seed(config.seed)
        self.model = PermutedLanguageModel(
            Encoder(config.model), self._fused_attention() if self.compiled else grouped_attention
        )
        if start is not None:
            self.model.encoder.load_state_dict(start.state_dict())
        if vectors is not None:
            self.model.encoder.embeddings.token.weight.data.copy_(torch.from_numpy(vectors))
        self.model.to(world.device)
        self.is_sharded = config.sharding and world.size > 1
        if self.is_sharded and self.update_batches * config.model.max_length > config.update_tokens:
            raise InputError("sharding: each process needs texts in each update; raise batch_tokens")
        if self.compiled:
            torch._dynamo.config.recompile_limit = 64  # shapes of batches, in training and evaluation
            # Without compilation, a run would be several times slower.
            torch._dynamo.config.fail_on_recompile_limit_hit = True
            for layer in self.model.encoder.layers:
                layer.compile(dynamic=False)
        if self.is_sharded:
            shard(self.model, self.model.encoder.layers, world)
        self._prefetcher = Prefetcher(self._prepare_batches)

    def _fused_attention(self) -> MakeAttention:
        """Return the attention of GPUs, and choose the rows to which batches are padded."""
        try:
            from train.pretrain.gpu_attention import BLOCK_SIZE, fused_attention
        except ImportError:
            raise InputError("pretraining on a GPU needs the package triton") from None
        # Few shapes; with 4,096 tokens per batch or more, 1% is padding on average.
        self._step = max(1, self.config.batch_tokens // 64 // BLOCK_SIZE) * BLOCK_SIZE
        return fused_attention

    @property
    def update_batches(self) -> int:
        """The batches in an update over all processes: as configured, but equally many for each process."""
        # `-(-a // b)` rounds up.
        return -(-self.config.accumulation // self.world.size) * self.world.size

    def losses(self, update: int) -> Sequence[LossPart]:
        """Return the parts of the loss of one update that this process computes, one for each of its batches.

        The loss is the mean over the predicted tokens of all batches, in nats.
        """
        batches, predicted = self._prefetcher[update]
        return [partial(self._loss_part, batch, predicted) for batch in batches]

    def _loss_part(self, batch: PermutedBatch, predicted: int) -> tuple[Tensor, int]:
        """Compute a batch's summand of the loss, in nats, and the number of its text tokens."""
        # Divided by the predicted tokens of the whole update: the summands of all batches add up to the mean.
        return self._loss(batch) / predicted, batch.text_tokens

    def evaluate(self) -> tuple[float, dict[str, float]]:
        """Compute the perplexity on the held-out texts, alone and for the log."""
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
        """Format the mean loss per predicted token and the perplexity for the progress bar."""
        return f"loss {loss:.3f}, perplexity {compute_perplexity(loss):,.1f}"

    def describe_texts(self, update: int) -> str:
        """Describe the texts in an update, so that a bad text can be found.

        The first five texts are given by their line numbers in the corpus, or the numbers of blocks, from 1.
        """
        epochs, texts = self.batches.texts_of_update(update, 1)[0]
        kind = "block" if self.config.packing == "blocks" else f"line of {TRAIN}"
        first = ", ".join(str(text + 1) for text in texts[:5])
        return f"epoch {epochs[0]}, {len(texts)} texts ({kind} {first}, …)"

    def _prepare_batches(self, update: int) -> tuple[list[PermutedBatch], int]:
        """Make this process's batches, and count the predicted tokens in the batches of all processes."""
        parts = self.batches.texts_of_update(update, self.update_batches)
        own = [part for part in parts[self.world.rank :: self.world.size] if len(part[1])]
        batches = [self._pad_and_pin(self.batches.make_batch(*part)) for part in own]
        return batches, self.batches.count_predicted(parts)

    def _pad_and_pin(self, batch: PermutedBatch) -> PermutedBatch:
        """Pad a batch if the model is compiled, and pin it in memory if the model is on a GPU."""
        if self.compiled:
            batch = pad_streams(by_position(batch), self._step)
        return batch if self.world.device.type == "cpu" else batch.pinned()

    def _loss(self, batch: PermutedBatch) -> Tensor:
        with autocast(self.world.device, self.config.precision):
            return self.model(batch.to(self.world.device))
