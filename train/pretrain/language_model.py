"""The permuted language model: an encoder with output layers, and its loss over a large vocabulary."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from simllm.model.config import ModelConfig
from simllm.model.network import Encoder
from train.pretrain.attention import MakeAttention, grouped_attention
from train.pretrain.permutation import PermutedBatch

# Logits in a chunk: they fit into a CPU's cache, or fill a GPU.
_LOGITS = {"cpu": 2**21, "cuda": 2**26}


def linear_cross_entropy(
    hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, ignore: int
) -> Tensor:
    """Compute sum_i -log softmax(hidden_i · weightᵀ + bias)[target_i] in nats, a sum and not a mean.

    The forward pass computes logits, loss and gradients chunk by chunk. Only the gradients with respect to
    the inputs are stored for the backward pass (as in Hsu et al., "Liger Kernel", 2024).

    Shapes: `hidden` (M, D), `weight` (V, D), `bias` (V,), `targets` (M,). Rows with the target `ignore`, such
    as padding, have loss 0.
    """
    device = hidden.device.type
    dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else hidden.dtype
    # Small probabilities underflow in float16. Everything but matrix products is computed in float32.
    dtype = torch.float32 if dtype == torch.float16 else dtype
    with torch.autocast(device, enabled=False):
        loss: Tensor = _LinearCrossEntropy.apply(
            hidden.to(dtype), weight, bias, targets, ignore, torch.is_grad_enabled()
        )
    return loss


class _LinearCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, ignore: int, gradients: bool
    ) -> Tensor:
        """Compute the loss, and with `gradients` also the gradients, a chunk of rows at a time."""
        vectors, loss = weight.to(hidden.dtype), hidden.new_zeros((), dtype=torch.float32)
        rows = max(1, _LOGITS[hidden.device.type] // len(weight))
        to_hidden = torch.empty_like(hidden)
        to_weight, to_bias = torch.zeros_like(weight), torch.zeros_like(bias)
        for start in range(0, len(hidden), rows):
            part, target = hidden[start : start + rows], targets[start : start + rows, None]
            counted = target != ignore
            log_p = (part @ vectors.T).float().add_(bias).log_softmax(1)
            loss -= (log_p.gather(1, target) * counted).sum()
            if gradients:
                # The gradient of the loss with respect to the logits: softmax minus one-hot target.
                error = log_p.exp_().scatter_add_(1, target, -torch.ones_like(target, dtype=log_p.dtype))
                error *= counted
                to_bias += error.sum(0)
                error = error.to(hidden.dtype)
                to_hidden[start : start + rows] = error @ vectors
                to_weight += error.T @ part
        if gradients:
            ctx.save_for_backward(to_hidden, to_weight, to_bias)
        return loss

    @staticmethod
    def backward(ctx: Any, *outputs: Tensor) -> tuple[Tensor | None, ...]:
        """Multiply the stored gradients by the gradient with respect to the loss, a scalar."""
        (loss,) = outputs
        scaled = ((saved.float() * loss).to(saved.dtype) for saved in ctx.saved_tensors)
        return *scaled, None, None, None


class LanguageModelHead(nn.Module):
    """Output layers of the language model: dense layer, GELU, layer norm, and the bias of the logits."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.norm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)
        # The weights that map vectors to logits are the encoder's token embeddings, not part of this module.
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))
        nn.init.normal_(self.dense.weight, std=config.initializer_range)
        nn.init.zeros_(self.dense.bias)

    def forward(self, hidden: Tensor) -> Tensor:
        """Map (…, D) hidden states to (…, D) vectors, whose products with the token embeddings are logits."""
        return self.norm(F.gelu(self.dense(hidden)))


class PermutedLanguageModel(nn.Module):
    """An encoder with output layers that predict tokens in permuted order."""

    def __init__(self, encoder: Encoder, make_attention: MakeAttention = grouped_attention) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = LanguageModelHead(encoder.config)
        self.make_attention = make_attention

    def forward(self, batch: PermutedBatch) -> Tensor:
        """Return the loss of a batch: the sum of -log p over its predicted tokens, in nats."""
        # Only the query stream makes predictions.
        queries = self.head(self.hidden(batch)[len(batch.prediction_turns) :])
        weight = self.encoder.embeddings.token.weight
        return linear_cross_entropy(
            queries, weight, self.head.bias, batch.targets, self.encoder.config.pad_token_id
        )

    def hidden(self, batch: PermutedBatch) -> Tensor:
        """Compute (T, D) hidden states of the rows of a batch."""
        encoder = self.encoder
        attend = self.make_attention(batch, encoder.relative_bias, encoder.attention_dropout)
        # All rows attend only to rows of the content stream.
        columns = len(batch.prediction_turns)
        return encoder.encode_rows(batch.tokens[None], batch.positions[None], columns, attend)[0]

    def logits(self, hidden: Tensor) -> Tensor:
        """Map (…, D) hidden states to (…, V) logits, one for each token of the vocabulary."""
        return F.linear(self.head(hidden), self.encoder.embeddings.token.weight, self.head.bias)
