"""The encoder: MPNet (Song et al., 2020), written to be read from top to bottom.

Shapes: B texts, R rows (positions that are computed), C columns (positions that are
attended to), H heads, D hidden size. In plain encoding R = C = L, the length; in training
the rows are the content and the query stream of many texts, the columns the content
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
    """Token plus learned position, layer norm, dropout."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.token = nn.Embedding(config.vocab_size, config.hidden_size, config.pad_token_id)
        self.position = nn.Embedding(config.max_position_embeddings, config.hidden_size, config.pad_token_id)
        self.first_position = config.pad_token_id + 1  # the rows before it are never used
        self.norm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, tokens: Tensor, positions: Tensor) -> Tensor:
        """(B, R) token ids and positions from 0 -> (B, R, D)."""
        summed = self.token(tokens) + self.position(positions + self.first_position)
        return self.dropout(self.norm(summed))


class RelativeBias(nn.Module):
    """One scalar a head for every bucket of key position minus query position (T5's scheme)."""

    max_distance = 128

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.table = nn.Embedding(config.relative_attention_num_buckets, config.num_attention_heads)
        self.longest = config.max_length

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        """(B, R) and (B, C) positions -> (B, H, R, C) to be added to the attention scores."""
        buckets = self.bucket(keys[:, None, :] - queries[:, :, None])
        return self.table(buckets).permute(0, 3, 1, 2)

    def bucket(self, distance: Tensor) -> Tensor:
        """Bucket of each distance: half of them a sign, the near half of these exact, the rest
        logarithmic up to `max_distance`.
        """
        per_sign = self.table.num_embeddings // 2
        exact = per_sign // 2
        far = torch.log(distance.abs().clamp(min=1).float() / exact)
        far = exact + (far / math.log(self.max_distance / exact) * (per_sign - exact)).long()
        near = torch.where(distance.abs() < exact, distance.abs(), far.clamp(max=per_sign - 1))
        return near + per_sign * (distance > 0)


def attention(q: Tensor, k: Tensor, v: Tensor, bias: Tensor, dropout: float) -> Tensor:
    """Softmax attention with a bias (B or 1, H, R, C) added to the scaled scores."""
    return F.scaled_dot_product_attention(q, k, v, attn_mask=bias.to(q.dtype), dropout_p=dropout)


# Queries (B, H, R, D / H), keys and values (B, H, C, D / H) -> (B, H, R, D / H): who attends to whom.
Mix = Callable[[Tensor, Tensor, Tensor], Tensor]


class Attention(nn.Module):
    """Multi-head attention whose keys and values come from the first `columns` rows."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.heads = config.num_attention_heads
        self.query = nn.Linear(config.hidden_size, config.hidden_size)
        self.key = nn.Linear(config.hidden_size, config.hidden_size)
        self.value = nn.Linear(config.hidden_size, config.hidden_size)
        self.output = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, x: Tensor, columns: int, mix: Mix) -> Tensor:
        """(B, R, D) -> (B, R, D)."""
        content = x[:, :columns]
        q, k, v = (
            projected.unflatten(-1, (self.heads, -1)).transpose(1, 2)  # (B, H, R or C, D / H)
            for projected in (self.query(x), self.key(content), self.value(content))
        )
        return self.output(mix(q, k, v).transpose(1, 2).flatten(2))


class Layer(nn.Module):
    """Attention and feed-forward, each followed by residual and layer norm (post-LN)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.attention = Attention(config)
        self.attention_norm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)
        self.up = nn.Linear(config.hidden_size, config.intermediate_size)
        self.down = nn.Linear(config.intermediate_size, config.hidden_size)
        self.norm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, x: Tensor, columns: int, mix: Mix) -> Tensor:
        """(B, R, D) -> (B, R, D)."""
        x = self.attention_norm(x + self.dropout(self.attention(x, columns, mix)))
        return self.norm(x + self.dropout(self.down(F.gelu(self.up(x)))))


class Encoder(nn.Module):
    """Embeddings, layers that share one relative bias, and nothing else."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.embeddings = Embeddings(config)
        self.relative_bias = RelativeBias(config)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.num_hidden_layers))
        self.apply(self._initialize)

    def _initialize(self, module: nn.Module) -> None:
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=self.config.initializer_range)
        if isinstance(module, nn.Linear):
            nn.init.zeros_(module.bias)
        if isinstance(module, nn.Embedding) and module.padding_idx is not None:
            nn.init.zeros_(module.weight[module.padding_idx].data)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.embeddings.token.weight.device

    @property
    def attention_dropout(self) -> float:
        """The share of attention weights that is dropped: none outside of training."""
        return self.config.attention_probs_dropout_prob if self.training else 0.0

    def forward(
        self, tokens: Tensor, mask: Tensor | None = None, attention: Callable[..., Tensor] = attention
    ) -> Tensor:
        """Encode (B, L) token ids -> (B, L, D); `mask` is true at the tokens that are not padding."""
        positions = torch.arange(tokens.shape[1], device=tokens.device)[None]
        bias = self.relative_bias(positions, positions)
        if mask is not None:
            bias = bias.masked_fill(~mask[:, None, None, :], torch.finfo(bias.dtype).min)
        mix = partial(attention, bias=bias, dropout=self.attention_dropout)
        return self.attend(tokens, positions, tokens.shape[1], mix)

    def attend(self, tokens: Tensor, positions: Tensor, columns: int, mix: Mix) -> Tensor:
        """Encode with any positions and any visibility; training's two streams enter here.

        tokens (B, R), positions (B or 1, R); the first `columns` rows are the keys and
        values; `mix` decides who attends to whom, relative bias included.
        """
        x = self.embeddings(tokens, positions)
        for layer in self.layers:
            x = layer(x, columns, mix)
        return x
