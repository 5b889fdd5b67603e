"""The language model for pretraining: encoder, output layers, forward pass, and loss.

The forward pass computes two streams at once. A stream is a sequence of rows. A row is a token, or a
placeholder for a token to predict. The content stream has the tokens and placeholders of the texts. The query
stream has only placeholders, and makes the predictions.
"""

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
    """Output layers of the language model: dense layer, GELU, layer norm, and the bias of the logits.

    The weights that map vectors to logits are the encoder's token embeddings, so they are not in this module.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.norm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))
        nn.init.normal_(self.dense.weight, std=config.initializer_range)
        nn.init.zeros_(self.dense.bias)

    def forward(self, hidden: Tensor) -> Tensor:
        """Map (…, D) hidden states to (…, D) vectors, from which the caller can compute the logits.

        The logits are the products of the vectors with the token embeddings, plus `self.bias`.
        """
        return self.norm(F.gelu(self.dense(hidden)))


class PermutedLanguageModel(nn.Module):
    """An encoder with output layers that predict tokens of a text in a permuted (random) order.

    Args:
        encoder: The encoder.
        make_attention: Function that takes a batch, the relative position bias and the dropout probability.
            It returns the function that computes the attention of this batch. An example is
            `grouped_attention`.
    """

    def __init__(self, encoder: Encoder, make_attention: MakeAttention = grouped_attention) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = LanguageModelHead(encoder.config)
        self.make_attention = make_attention

    def forward(self, batch: PermutedBatch) -> Tensor:
        """Return the loss of a batch: the sum of -log p over its predicted tokens, in nats.

        Padding has loss 0.
        """
        queries = self.head(self.hidden(batch)[len(batch.prediction_turns) :])
        weight = self.encoder.embeddings.token.weight
        return linear_cross_entropy(
            queries, weight, self.head.bias, batch.targets, self.encoder.config.pad_token_id
        )

    def hidden(self, batch: PermutedBatch) -> Tensor:
        """Compute the hidden states of a batch of texts: one vector for each of T rows.

        A row is a token, or a placeholder for a token to predict. The first rows are the content stream: the
        tokens and placeholders of all texts. The other rows are the query stream: placeholders, from which
        the model makes the predictions. All rows attend only to rows of the content stream.

        Returns:
            (T, D) hidden states.
        """
        encoder = self.encoder
        attend = self.make_attention(batch, encoder.relative_bias, encoder.attention_dropout)
        columns = len(batch.prediction_turns)
        return encoder.encode_rows(batch.tokens[None], batch.positions[None], columns, attend)[0]

    def logits(self, hidden: Tensor) -> Tensor:
        """Map (…, D) hidden states to (…, V) logits, one for each token of the vocabulary."""
        return F.linear(self.head(hidden), self.encoder.embeddings.token.weight, self.head.bias)
