"""The encoder: MPNet (Song et al., 2020).

Letters in tensor shapes:

B  texts in the batch
L  tokens in a text, padding included
R  query positions: the positions whose states are computed
C  key positions: the positions that the query positions attend to
H  attention heads
D  hidden size

When the encoder scores texts, R = C = L. In pretraining, there are two streams of positions: the content
stream holds the text, and the query stream predicts tokens. All positions attend only to the content stream.
Then C is the number of positions in the content stream, and R is the number of positions in both streams.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from simllm.model.config import ModelConfig


class Embeddings(nn.Module):
    """First layer of the encoder: the sum of token and position embeddings, then layer norm and dropout."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.token = nn.Embedding(config.vocab_size, config.hidden_size, config.pad_token_id)
        self.position = nn.Embedding(config.max_position_embeddings, config.hidden_size, config.pad_token_id)
        self.first_position = config.pad_token_id + 1  # MPNet does not use the first rows of the table
        self.norm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, tokens: Tensor, positions: Tensor) -> Tensor:
        """Embed token ids.

        Args:
            tokens: (B, R) token ids: B texts of R tokens.
            positions: (B or 1, R) position of each token in its text, counted from 0.

        Returns:
            (B, R, D) embeddings; D is the hidden size.
        """
        summed = self.token(tokens) + self.position(positions + self.first_position)
        return self.dropout(self.norm(summed))


class RelativeBias(nn.Module):
    """Relative position bias, which is added to attention scores, as in T5.

    The distances between positions are divided into buckets (ranges). For each bucket and each attention
    head, the bias is one learned number.
    """

    max_distance = 128

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.table = nn.Embedding(config.relative_attention_num_buckets, config.num_attention_heads)
        self.longest = config.max_length

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Compute the relative position bias, which is added to the attention scores.

        Args:
            queries: (B, R) token positions of R queries in B texts.
            keys: (B, C) token positions of C keys in B texts.

        Returns:
            (B, H, R, C) bias; H is the number of attention heads.
        """
        buckets = self.bucket(keys[:, None, :] - queries[:, :, None])
        return self.table(buckets).permute(0, 3, 1, 2)

    def bucket(self, distance: Tensor) -> Tensor:
        """Assign distances between positions to numbered buckets, as T5 does.

        Half of the buckets is for positive distances, the other half for zero and negative distances. In each
        half, the first buckets are for a single distance each. The other buckets are for ranges of distances,
        which grow logarithmically up to `max_distance`. The last bucket also covers all larger distances.

        Args:
            distance: Key position minus query position; a tensor of any shape.

        Returns:
            The bucket number of each distance, in the same shape.
        """
        per_sign = self.table.num_embeddings // 2
        exact = per_sign // 2
        far = torch.log(distance.abs().clamp(min=1).float() / exact)
        far = exact + (far / math.log(self.max_distance / exact) * (per_sign - exact)).long()
        near = torch.where(distance.abs() < exact, distance.abs(), far.clamp(max=per_sign - 1))
        return near + per_sign * (distance > 0)


def attention(q: Tensor, k: Tensor, v: Tensor, bias: Tensor, dropout: float) -> Tensor:
    """Compute softmax attention with a bias: softmax(q kᵀ / sqrt(D / H) + bias) v.

    Args:
        q: (B, H, R, D / H) queries: B texts, H heads, R query positions, hidden size D.
        k: (B, H, C, D / H) keys; C is the number of key positions.
        v: (B, H, C, D / H) values.
        bias: (B or 1, H, R, C) bias; a very negative number hides a key from a query.
        dropout: Dropout probability of the attention weights.

    Returns:
        (B, H, R, D / H) weighted sums of the values.
    """
    return F.scaled_dot_product_attention(q, k, v, attn_mask=bias.to(q.dtype), dropout_p=dropout)


# A function of queries (B, H, R, D / H), keys and values (B, H, C, D / H); it returns (B, H, R, D / H).
# It decides which query positions attend to which key positions, and adds the relative position bias.
AttentionFunction = Callable[[Tensor, Tensor, Tensor], Tensor]


class Attention(nn.Module):
    """Multi-head attention, in which all R positions of the input attend only to the first C positions.

    C is the argument `columns` of `forward`. In ordinary self-attention, C = R. In pretraining, the other
    R - C positions are the query stream, which predicts tokens. No position attends to them.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.heads = config.num_attention_heads
        self.query = nn.Linear(config.hidden_size, config.hidden_size)
        self.key = nn.Linear(config.hidden_size, config.hidden_size)
        self.value = nn.Linear(config.hidden_size, config.hidden_size)
        self.output = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, x: Tensor, columns: int, attend: AttentionFunction) -> Tensor:
        """Apply multi-head attention to hidden states.

        Args:
            x: (B, R, D) hidden states: B texts, R positions, hidden size D.
            columns: Number C of positions that can be attended to: the first C of the R positions. The other
                positions have queries, but no keys and values.
            attend: The function that computes the attention from queries, keys and values.

        Returns:
            (B, R, D) hidden states.
        """
        content = x[:, :columns]
        q, k, v = (
            projected.unflatten(-1, (self.heads, -1)).transpose(1, 2)  # (B, H, R or C, D / H)
            for projected in (self.query(x), self.key(content), self.value(content))
        )
        return self.output(attend(q, k, v).transpose(1, 2).flatten(2))


class Layer(nn.Module):
    """Transformer layer: attention, then a feed-forward network.

    Each of the two has a residual connection, followed by layer norm.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.attention = Attention(config)
        self.attention_norm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)
        self.up = nn.Linear(config.hidden_size, config.intermediate_size)
        self.activation = nn.GELU()
        self.down = nn.Linear(config.intermediate_size, config.hidden_size)
        self.norm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, x: Tensor, columns: int, attend: AttentionFunction) -> Tensor:
        """Apply the transformer layer to hidden states.

        Args:
            x: (B, R, D) hidden states: B texts, R positions, hidden size D.
            columns: Number C of positions that can be attended to: the first C of the R positions. The other
                positions have queries, but no keys and values.
            attend: The function that computes the attention from queries, keys and values.

        Returns:
            (B, R, D) hidden states.
        """
        x = self.attention_norm(x + self.dropout(self.attention(x, columns, attend)))
        return self.norm(x + self.dropout(self.down(self.activation(self.up(x)))))


def of_last_layer(states: Tensor, hidden_size: int) -> Tensor:
    """Select the hidden states of the last layer from hidden states of several layers.

    The function can also be used for the weight of a linear layer that has such hidden states as inputs. The
    weight has the shape (outputs, N * D).

    Args:
        states: (…, N * D) hidden states of N layers, side by side. The last D columns belong to the last
            layer.
        hidden_size: The hidden size D.

    Returns:
        The last D columns of `states`, with the shape (…, D).
    """
    return states[..., -hidden_size:]


class Encoder(nn.Module):
    """The MPNet encoder: an embedding layer, then transformer layers that share one relative position bias.

    Attributes:
        gradient_checkpointing: Whether the backward pass of training computes the layers' outputs again, to
            save memory.
    """

    gradient_checkpointing = False

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.embeddings = Embeddings(config)
        self.relative_bias = RelativeBias(config)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.num_hidden_layers))
        self.apply(self._initialize)

    def _initialize(self, module: nn.Module) -> None:
        """Initialize a layer: random normal weights, zero biases, and a zero embedding for padding."""
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=self.config.initializer_range)
        if isinstance(module, nn.Linear):
            nn.init.zeros_(module.bias)
        if isinstance(module, nn.Embedding) and module.padding_idx is not None:
            nn.init.zeros_(module.weight[module.padding_idx].data)

    @property
    def device(self) -> torch.device:
        """The torch device that holds the weights."""
        return self.embeddings.token.weight.device

    @property
    def attention_dropout(self) -> float:
        """Dropout probability of the attention weights; 0 in evaluation mode."""
        return self.config.attention_probs_dropout_prob if self.training else 0.0

    def forward(
        self,
        tokens: Tensor,
        mask: Tensor | None = None,
        attention: Callable[..., Tensor] = attention,
        last_layers: int = 1,
    ) -> Tensor:
        """Encode B texts of L tokens (padding included).

        Args:
            tokens: (B, L) token ids.
            mask: (B, L) bool, true for tokens that are not padding; None if nothing is padding.
            attention: The function that computes the attention, by default
                `simllm.model.encoder.attention`; other functions must take the same arguments.
            last_layers: Number N of layers whose hidden states are returned, counted from the last layer;
                from 1 to the number of layers.

        Returns:
            (B, L, N * D) hidden states; D is the hidden size. The states of the N layers are side by side,
            and those of the last layer come last (see `of_last_layer`).
        """
        positions = torch.arange(tokens.shape[1], device=tokens.device)[None]
        bias = self.relative_bias(positions, positions)
        if mask is not None:
            bias = bias.masked_fill(~mask[:, None, None, :], torch.finfo(bias.dtype).min)
        attend = partial(attention, bias=bias, dropout=self.attention_dropout)
        return self.encode_rows(tokens, positions, tokens.shape[1], attend, last_layers)

    def encode_rows(
        self, tokens: Tensor, positions: Tensor, columns: int, attend: AttentionFunction, last_layers: int = 1
    ) -> Tensor:
        """Encode B inputs of R tokens, with given token positions and a given attention function.

        Pretraining calls this method, because its input has two streams: the content stream (the text) and
        the query stream (which predicts tokens). For plain texts, use `forward`, which numbers the tokens
        from left to right and lets them attend to each other.

        Args:
            tokens: (B, R) token ids.
            positions: (B or 1, R) position of each token in its text, counted from 0.
            columns: Number C of tokens that can be attended to: the first C of the R tokens. The other tokens
                attend to the first C tokens, but no token attends to the other tokens.
            attend: The function that computes the attention from queries, keys and values. It also adds the
                relative position bias.
            last_layers: Number N of layers whose hidden states are returned, counted from the last layer.

        Returns:
            (B, R, N * D) hidden states of the N layers side by side, those of the last layer at the end. D is
            the hidden size.
        """
        x = self.embeddings(tokens, positions)
        states: deque[Tensor] = deque(maxlen=last_layers)
        again = self.gradient_checkpointing and torch.is_grad_enabled()
        for layer in self.layers:
            x = (
                checkpoint(layer, x, columns, attend, use_reentrant=False)
                if again
                else layer(x, columns, attend)
            )
            states.append(x)
        return x if last_layers == 1 else torch.cat([*states], dim=-1)
