"""The language model for pretraining: encoder, head, two-stream forward pass, and loss."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from simllm.model.config import ModelConfig
from simllm.model.encoder import Encoder
from train.pretrain.attention import MakeAttention, grouped_attention
from train.pretrain.cross_entropy import linear_cross_entropy
from train.pretrain.permutation import PermutedBatch


class LanguageModelHead(nn.Module):
    """Head of the language model: dense layer, GELU, layer norm; tied to the token embeddings."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.norm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))
        nn.init.normal_(self.dense.weight, std=config.initializer_range)
        nn.init.zeros_(self.dense.bias)

    def forward(self, hidden: Tensor) -> Tensor:
        """Map (…, D) states to (…, D) vectors, to be multiplied with the token embeddings."""
        return self.norm(F.gelu(self.dense(hidden)))


class PermutedLanguageModel(nn.Module):
    """An encoder with a language-model head."""

    def __init__(self, encoder: Encoder, make_attention: MakeAttention = grouped_attention) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = LanguageModelHead(encoder.config)
        self.make_attention = make_attention

    def forward(self, batch: PermutedBatch) -> Tensor:
        """Return the sum of -log p over the predicted tokens, in nats; padding has loss 0."""
        queries = self.head(self.hidden(batch)[len(batch.prediction_turns) :])
        weight = self.encoder.embeddings.token.weight
        return linear_cross_entropy(
            queries, weight, self.head.bias, batch.targets, self.encoder.config.pad_token_id
        )

    def hidden(self, batch: PermutedBatch) -> Tensor:
        """Return the (T, D) states of both streams; only the content stream gives keys and values."""
        encoder = self.encoder
        attend = self.make_attention(batch, encoder.relative_bias, encoder.attention_dropout)
        columns = len(batch.prediction_turns)
        return encoder.encode_rows(batch.tokens[None], batch.positions[None], columns, attend)[0]

    def logits(self, hidden: Tensor) -> Tensor:
        """Map (…, D) states to (…, V) logits."""
        return F.linear(self.head(hidden), self.encoder.embeddings.token.weight, self.head.bias)
