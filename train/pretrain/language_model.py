"""The language model for pretraining: encoder, output layers, forward pass, and loss."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from simllm.model.encoder import Encoder
from simllm.model.model_config import ModelConfig
from train.pretrain.cross_entropy import linear_cross_entropy
from train.pretrain.permutation import PermutedBatch
from train.pretrain.two_stream_attention import MakeAttention, grouped_attention


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
