"""The encoder: MPNet (Song et al., 2020).

Shapes: B texts, R rows (positions that are computed), C columns (positions that are attended to),
H heads, D hidden size. When the encoder scores texts, R = C = L, the length. In pretraining the
rows are the content stream and the query stream of many texts, and the columns are the content
stream alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from simllm.model.config import ModelConfig


class Embeddings(nn.Module):
    """Sum of token and position embeddings, then layer norm and dropout."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.token = nn.Embedding(config.vocab_size, config.hidden_size, config.pad_token_id)
        self.position = nn.Embedding(config.max_position_embeddings, config.hidden_size, config.pad_token_id)
        self.first_position = config.pad_token_id + 1  # MPNet does not use the rows before it
        self.norm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, tokens: Tensor, positions: Tensor) -> Tensor:
        """Embed (B, R) token ids at (B, R) positions, counted from 0; return (B, R, D)."""
        summed = self.token(tokens) + self.position(positions + self.first_position)
        return self.dropout(self.norm(summed))


class RelativeBias(nn.Module):
    """Relative position bias as in T5: for each head, one scalar per bucket of distances."""

    max_distance = 128

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.table = nn.Embedding(config.relative_attention_num_buckets, config.num_attention_heads)
        self.longest = config.max_length

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Return the (B, H, R, C) bias of the attention scores for (B, R) query and (B, C) key positions."""
        buckets = self.bucket(keys[:, None, :] - queries[:, :, None])
        return self.table(buckets).permute(0, 3, 1, 2)

    def bucket(self, distance: Tensor) -> Tensor:
        """Return the bucket of each distance (key position minus query position), as in T5.

        One half of the buckets is for positive distances, the other half for all others. In each half,
        the first buckets hold one distance each. The rest hold ranges, which grow logarithmically up to
        `max_distance`; the last bucket also holds all larger distances.
        """
        per_sign = self.table.num_embeddings // 2
        exact = per_sign // 2
        far = torch.log(distance.abs().clamp(min=1).float() / exact)
        far = exact + (far / math.log(self.max_distance / exact) * (per_sign - exact)).long()
        near = torch.where(distance.abs() < exact, distance.abs(), far.clamp(max=per_sign - 1))
        return near + per_sign * (distance > 0)


def attention(q: Tensor, k: Tensor, v: Tensor, bias: Tensor, dropout: float) -> Tensor:
    """Compute softmax attention with a (B or 1, H, R, C) bias; shapes as in `AttentionFunction`."""
    return F.scaled_dot_product_attention(q, k, v, attn_mask=bias.to(q.dtype), dropout_p=dropout)


# Takes queries (B, H, R, D / H), keys and values (B, H, C, D / H); returns (B, H, R, D / H).
# It decides which rows attend to which columns, and adds the relative bias.
AttentionFunction = Callable[[Tensor, Tensor, Tensor], Tensor]


class Attention(nn.Module):
    """Multi-head attention with keys and values from the first `columns` rows only."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.heads = config.num_attention_heads
        self.query = nn.Linear(config.hidden_size, config.hidden_size)
        self.key = nn.Linear(config.hidden_size, config.hidden_size)
        self.value = nn.Linear(config.hidden_size, config.hidden_size)
        self.output = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, x: Tensor, columns: int, attend: AttentionFunction) -> Tensor:
        """Transform (B, R, D) states into (B, R, D) states."""
        content = x[:, :columns]
        q, k, v = (
            projected.unflatten(-1, (self.heads, -1)).transpose(1, 2)  # (B, H, R or C, D / H)
            for projected in (self.query(x), self.key(content), self.value(content))
        )
        return self.output(attend(q, k, v).transpose(1, 2).flatten(2))


class Layer(nn.Module):
    """Transformer layer: attention and feed-forward, each with a residual and then layer norm."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.attention = Attention(config)
        self.attention_norm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)
        self.up = nn.Linear(config.hidden_size, config.intermediate_size)
        self.down = nn.Linear(config.intermediate_size, config.hidden_size)
        self.norm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, x: Tensor, columns: int, attend: AttentionFunction) -> Tensor:
        """Transform (B, R, D) states into (B, R, D) states."""
        x = self.attention_norm(x + self.dropout(self.attention(x, columns, attend)))
        return self.norm(x + self.dropout(self.down(F.gelu(self.up(x)))))


class Encoder(nn.Module):
    """The MPNet encoder: embeddings, then layers that share one relative position bias."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.embeddings = Embeddings(config)
        self.relative_bias = RelativeBias(config)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.num_hidden_layers))
        self.apply(self._initialize)

    def _initialize(self, module: nn.Module) -> None:
        """Initialise the weights of one module, as in BERT."""
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=self.config.initializer_range)
        if isinstance(module, nn.Linear):
            nn.init.zeros_(module.bias)
        if isinstance(module, nn.Embedding) and module.padding_idx is not None:
            nn.init.zeros_(module.weight[module.padding_idx].data)

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return self.embeddings.token.weight.device

    @property
    def attention_dropout(self) -> float:
        """Dropout probability of attention weights; 0 in evaluation mode."""
        return self.config.attention_probs_dropout_prob if self.training else 0.0

    def forward(
        self, tokens: Tensor, mask: Tensor | None = None, attention: Callable[..., Tensor] = attention
    ) -> Tensor:
        """Encode B texts.

        Args:
            tokens: (B, L) token ids.
            mask: (B, L) bool, true for tokens that are not padding; None if nothing is padding.
            attention: Computes the attention, with the arguments of `attention` in this module.

        Returns:
            (B, L, D) states.
        """
        positions = torch.arange(tokens.shape[1], device=tokens.device)[None]
        bias = self.relative_bias(positions, positions)
        if mask is not None:
            bias = bias.masked_fill(~mask[:, None, None, :], torch.finfo(bias.dtype).min)
        attend = partial(attention, bias=bias, dropout=self.attention_dropout)
        return self.encode_rows(tokens, positions, tokens.shape[1], attend)

    def encode_rows(
        self, tokens: Tensor, positions: Tensor, columns: int, attend: AttentionFunction
    ) -> Tensor:
        """Encode rows with any positions and any attention; pretraining passes its two streams here.

        Args:
            tokens: (B, R) token ids.
            positions: (B or 1, R) positions, counted from 0.
            columns: Number of rows, from the first, that give keys and values.
            attend: The attention function, which includes the relative bias.

        Returns:
            (B, R, D) states.
        """
        x = self.embeddings(tokens, positions)
        for layer in self.layers:
            x = layer(x, columns, attend)
        return x
