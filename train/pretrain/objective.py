"""Permuted language modelling: the two-stream forward pass and its loss over simllm.model.encoder."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from simllm.model.config import ModelConfig
from simllm.model.encoder import Encoder
from train.pretrain.attention import Mixing, by_length
from train.pretrain.cross_entropy import linear_cross_entropy
from train.pretrain.permutation import Permuted


class LanguageModelHead(nn.Module):
    """Dense, GELU, layer norm, then the tied token embedding with a bias of its own."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.norm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))
        nn.init.normal_(self.dense.weight, std=config.initializer_range)
        nn.init.zeros_(self.dense.bias)

    def forward(self, hidden: Tensor) -> Tensor:
        """(…, D) -> (…, D), to be compared with the token embeddings."""
        return self.norm(F.gelu(self.dense(hidden)))


class PermutedLanguageModel(nn.Module):
    """An encoder with a new language-model head: what is pretrained."""

    def __init__(self, encoder: Encoder, mixing: Mixing = by_length) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = LanguageModelHead(encoder.config)
        self.mixing = mixing

    def forward(self, batch: Permuted) -> Tensor:
        """Sum over the predicted tokens of -log p, in nats; the caller normalises.

        A predicted padding token costs nothing.
        """
        queries = self.head(self.hidden(batch)[len(batch.turns) :])
        weight = self.encoder.embeddings.token.weight
        return linear_cross_entropy(
            queries, weight, self.head.bias, batch.targets, self.encoder.config.pad_token_id
        )

    def hidden(self, batch: Permuted) -> Tensor:
        """(T, D) of both streams; keys and values come from the content stream only."""
        encoder = self.encoder
        mix = self.mixing(batch, encoder.relative_bias, encoder.attention_dropout)
        return encoder.encode_rows(batch.tokens[None], batch.positions[None], len(batch.turns), mix)[0]

    def logits(self, hidden: Tensor) -> Tensor:
        """(…, D) -> (…, V)."""
        return F.linear(self.head(hidden), self.encoder.embeddings.token.weight, self.head.bias)
