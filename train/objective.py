"""Permuted language modelling: the two-stream forward pass and its loss over simllm.model."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from simllm.config import ModelConfig
from simllm.model import Encoder
from train.permute import Permuted


class LanguageModelHead(nn.Module):
    """Dense, GELU, layer norm, then the tied token embedding with a bias of its own."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.norm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))
        nn.init.normal_(self.dense.weight, std=config.initializer_range)
        nn.init.zeros_(self.dense.bias)

    def forward(self, hidden: Tensor, token_embedding: Tensor) -> Tensor:
        """(…, D) -> logits (…, V)."""
        return F.linear(self.norm(F.gelu(self.dense(hidden))), token_embedding, self.bias)


class PermutedLanguageModel(nn.Module):
    """The encoder with its language-model head: what is pretrained."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.encoder = Encoder(config)
        self.head = LanguageModelHead(config)

    def forward(self, batch: Permuted) -> Tensor:
        """Logits (B, m, V) of the query stream, one row for each predicted token."""
        hidden = self.hidden(batch)
        return self.logits(hidden[:, hidden.shape[1] - batch.targets.shape[1] :])

    def hidden(self, batch: Permuted) -> Tensor:
        """(B, n + 2m, D) of both streams; keys and values come from the content stream only."""
        columns = batch.positions[:, : batch.visible.shape[-1]]
        return self.encoder.attend(batch.tokens, batch.positions, columns, batch.visible)

    def logits(self, hidden: Tensor) -> Tensor:
        """(…, D) -> (…, V)."""
        return self.head(hidden, self.encoder.embeddings.token.weight)

    def loss(self, batch: Permuted) -> Tensor:
        """Sum over the predicted tokens of -log p, in nats; the caller normalises.

        A predicted padding token costs nothing, as in the original; `train.batches` makes none.
        """
        return self.cross_entropy(self(batch), batch.targets)

    def cross_entropy(self, logits: Tensor, targets: Tensor) -> Tensor:
        """(B, m, V), (B, m) -> scalar sum, in nats."""
        padding = self.encoder.config.pad_token_id
        return F.cross_entropy(
            logits.flatten(0, 1).float(), targets.flatten(), ignore_index=padding, reduction="sum"
        )
