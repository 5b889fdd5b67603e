"""The network, read top-down: MPNet's encoder (Song et al., 2020), the pooling of its states into a text's
embedding (section 4.2 of the SIMLLM paper), and the meaning head, which reads two texts.

Besides the letters of the package, shapes use R for query positions, whose states are computed, and C for key
positions, to which they attend. When the encoder scores texts, R = C = L. In pretraining, there are two
streams of positions: the content stream holds the text, and the query stream predicts tokens. All R positions
of both streams attend only to the C positions of the content stream.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode
from torch.utils.checkpoint import checkpoint

from simllm.array_types import Floats32
from simllm.model.config import MAX_DISTANCE, HeadConfig, ModelConfig, check_pooling


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
        """Embed (B, R) token ids at (B or 1, R) positions, counted from 0; return (B, R, D)."""
        summed = self.token(tokens) + self.position(positions + self.first_position)
        return self.dropout(self.norm(summed))


class RelativeBias(nn.Module):
    """Relative position bias, as in T5: one learned number for each head and each bucket of distances."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.table = nn.Embedding(config.relative_attention_num_buckets, config.num_attention_heads)
        self.longest = config.max_position_embeddings  # no distance is as long

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Map (B, R) query positions and (B, C) key positions to the (B, H, R, C) bias."""
        buckets = self.bucket(keys[:, None, :] - queries[:, :, None])
        return self.table(buckets).permute(0, 3, 1, 2)

    def bucket(self, distance: Tensor) -> Tensor:
        """Assign distances (key minus query position, any shape) to numbered buckets, as T5 does.

        Half of the buckets is for positive distances, the other half for all others. In each half, the first
        buckets are for a single distance each. The others are ranges that grow logarithmically up to
        `MAX_DISTANCE`; the last one also covers all larger distances.
        """
        per_sign = self.table.num_embeddings // 2
        exact = per_sign // 2
        far = torch.log(distance.abs().clamp(min=1).float() / exact)
        far = exact + (far / math.log(MAX_DISTANCE / exact) * (per_sign - exact)).long()
        near = torch.where(distance.abs() < exact, distance.abs(), far.clamp(max=per_sign - 1))
        return near + per_sign * (distance > 0)


# softmax(q kᵀ / sqrt(D / H) + bias) v, of queries (B, H, R, D / H), keys and values (B, H, C, D / H), and a
# bias (B or 1, H, R, C), very negative where a key is hidden from a query. The result is (B, H, R, D / H).
attention = F.scaled_dot_product_attention

# The same function of q, k and v alone. It decides which query positions attend to which key positions, and
# adds the relative position bias.
AttentionFunction = Callable[[Tensor, Tensor, Tensor], Tensor]


class Attention(nn.Module):
    """Multi-head attention, in which all R positions attend only to the first C positions."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.heads = config.num_attention_heads
        self.query = nn.Linear(config.hidden_size, config.hidden_size)
        self.key = nn.Linear(config.hidden_size, config.hidden_size)
        self.value = nn.Linear(config.hidden_size, config.hidden_size)
        self.output = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, x: Tensor, columns: int, attend: AttentionFunction) -> Tensor:
        """Map (B, R, D) hidden states to (B, R, D); `columns` is C."""
        # In pretraining, the positions after the content are the query stream, to which no position attends.
        content = x[:, :columns]
        q, k, v = (
            projected.unflatten(-1, (self.heads, -1)).transpose(1, 2)  # (B, H, R or C, D / H)
            for projected in (self.query(x), self.key(content), self.value(content))
        )
        return self.output(attend(q, k, v).transpose(1, 2).flatten(2))


class Layer(nn.Module):
    """Transformer layer: attention and a feed-forward network, both with residual connections and norms."""

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
        """Map (B, R, D) hidden states to (B, R, D); `columns` is C."""
        x = self.attention_norm(x + self.dropout(self.attention(x, columns, attend)))
        return self.norm(x + self.dropout(self.down(self.activation(self.up(x)))))


class Encoder(nn.Module):
    """The MPNet encoder: an embedding layer, then transformer layers that share one relative position bias.

    If `gradient_checkpointing` is true, the backward pass computes the layers' outputs again, to save memory.
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
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=self.config.initializer_range)
        if isinstance(module, nn.Linear):
            nn.init.zeros_(module.bias)
        if isinstance(module, nn.Embedding) and module.padding_idx is not None:
            # `normal_` has overwritten the zeros that nn.Embedding gives to padding.
            nn.init.zeros_(module.weight[module.padding_idx].data)

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
        """Encode (B, L) token ids with a (B, L) mask; return (B, L, N * D) states of the N last layers.

        Without a mask, nothing is padding. `attention` may replace that of PyTorch, with its arguments.
        """
        # One row for all texts, so that the bias is computed once.
        positions = torch.arange(tokens.shape[1], device=tokens.device)[None]
        bias = self.relative_bias(positions, positions)
        if mask is not None:
            bias = bias.masked_fill(~mask[:, None, None, :], torch.finfo(bias.dtype).min)
        attend = partial(attention, attn_mask=bias, dropout_p=self.attention_dropout)
        return self.encode_rows(tokens, positions, tokens.shape[1], attend, last_layers)

    def encode_rows(
        self, tokens: Tensor, positions: Tensor, columns: int, attend: AttentionFunction, last_layers: int = 1
    ) -> Tensor:
        """Encode (B, R) token ids at given (B or 1, R) positions, for pretraining; texts take `forward`.

        `columns` is C, and `attend` adds the relative position bias. The result is (B, R, N * D).
        """
        x = self.embeddings(tokens, positions)
        # States of earlier layers are dropped, which frees their memory.
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


def of_last_layer(states: Tensor, hidden_size: int) -> Tensor:
    """Select the last layer's part, (…, D), of (…, N * D) hidden states.

    Weights of a linear layer that reads such states have the same order of columns, (outputs, N * D).
    """
    return states[..., -hidden_size:]


# The poolings of `config.POOLINGS`, for B texts at once.
def cls(hidden: Tensor, mask: Tensor) -> Tensor:
    """Take the state of each text's first token, `<s>`."""
    return hidden[:, 0]


def mean(hidden: Tensor, mask: Tensor) -> Tensor:
    """Take the mean over each text's tokens, `<s>` and `</s>` included."""
    weights = mask[:, :, None].to(hidden.dtype)
    # No division by zero: every text has at least the tokens <s> and </s>.
    return (hidden * weights).sum(1) / weights.sum(1)


def maximum(hidden: Tensor, mask: Tensor) -> Tensor:
    """Take the maximum over each text's tokens, in each dimension."""
    return hidden.masked_fill(~mask[:, :, None], torch.finfo(hidden.dtype).min).amax(1)


POOLINGS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"cls": cls, "mean": mean, "max": maximum}


def get_pooling(name: str) -> Callable[[Tensor, Tensor], Tensor]:
    """Return the pooling function of this name: `cls`, `mean` or `max`."""
    return POOLINGS[check_pooling(name)]


class MeaningHead(nn.Module):
    """Network that predicts whether two texts have the same meaning; their order does not matter.

    The cosine of two text embeddings hardly changes if one text has an additional "not", or if two words are
    swapped. Therefore the head aligns each token with similar tokens of the other text, and compares the
    aligned tokens (Parikh et al., "A decomposable attention model", 2016; Chen et al., "Enhanced LSTM for
    natural language inference", 2017). A few transformer layers then read these comparisons in the order of
    the text. The large encoder runs only once for each text, even if the text is in many pairs.
    """

    def __init__(self, config: HeadConfig, encoder: ModelConfig) -> None:
        super().__init__()
        self.config = config
        width, inner = config.width, config.inner(encoder)
        self.project = nn.Linear(config.encoder_layers * encoder.hidden_size, width)
        self.align = nn.Linear(width, width)
        # Features of a token: its state, the aligned state, their difference and product, and two numbers:
        # the offset of the aligned position, and the largest alignment weight.
        self.compare = nn.Linear(4 * width + 2, width)
        self.relative_bias = RelativeBias(inner)
        # The head starts without a preference for any distance.
        nn.init.zeros_(self.relative_bias.table.weight)
        self.layers = nn.ModuleList(Layer(inner) for _ in range(config.layers))
        self.hidden = nn.Linear(2 * width, width)
        self.logit = nn.Linear(width, 1)
        if config.graded:
            self.graded = nn.Linear(2 * width, 1)
            self.cosine_weight = nn.Parameter(torch.tensor([6.0]))
            # The graded output starts as a rising function of the cosine: 1 / (1 + exp(3 - 6 cosine)).
            nn.init.zeros_(self.graded.weight)
            nn.init.constant_(self.graded.bias, -3.0)

    def forward(
        self,
        a: Tensor,
        a_mask: Tensor,
        b: Tensor,
        b_mask: Tensor,
        attention: Callable[..., Tensor] = attention,
        cosines: Tensor | None = None,
    ) -> Tensor:
        """Predict (P, 1 or 2) logits from (P, L, W) and (P, M, W) outputs of `project`, and their masks.

        The first column is for the probability of the same meaning. The second is for the graded similarity;
        a graded head computes it if it gets the (P,) `cosines` of the embeddings. `attention` may replace
        that of PyTorch, with its arguments.
        """
        both = self.features(a, a_mask, b, b_mask, attention)
        same = self.same(both)
        if not self.config.graded or cosines is None:
            return same
        return torch.cat([same.float(), self.grade(both, cosines)], dim=1)

    def features(
        self,
        a: Tensor,
        a_mask: Tensor,
        b: Tensor,
        b_mask: Tensor,
        attention: Callable[..., Tensor] = attention,
    ) -> Tensor:
        """Compute the (P, 2 W) features of pairs, from which both logits are predicted."""
        scores = self.align(a) @ self.align(b).transpose(1, 2) / self.config.width**0.5
        of_a = self._read(a, a_mask, b, b_mask, scores, attention)
        of_b = self._read(b, b_mask, a, a_mask, scores.transpose(1, 2), attention)
        # A sum, so that the order of the texts does not matter.
        return of_a + of_b

    def same(self, features: Tensor) -> Tensor:
        """Predict the (P, 1) logits of the same meaning from `features`."""
        return self.logit(F.gelu(self.hidden(features)))

    def grade(self, features: Tensor, cosines: Tensor) -> Tensor:
        """Predict the (P, 1) logits of the graded similarity from `features` and (P,) cosines."""
        # In float32: in bfloat16, neighbouring cosines would become equal.
        return self.graded(features).float() + (self.cosine_weight.float() * cosines)[:, None]

    def _read(
        self,
        own: Tensor,
        mask: Tensor,
        other: Tensor,
        other_mask: Tensor,
        scores: Tensor,
        attention: Callable[..., Tensor],
    ) -> Tensor:
        """Compute (P, 2 W) features of the text `own` by comparing its tokens with those of `other`.

        Shapes: `own` (P, L, W), `other` (P, M, W), alignment scores (P, L, M).
        """
        scores = scores.masked_fill(~other_mask[:, None, :], torch.finfo(scores.dtype).min)
        # In float32: bfloat16 cannot tell position 300 from 301, and its softmax is slow.
        weights = scores.softmax(-1, dtype=torch.float32)
        aligned = weights.to(other.dtype) @ other
        columns = torch.arange(other.shape[1], device=own.device)
        positions = torch.arange(own.shape[1], device=own.device)[None]
        # Bounded by tanh, since large offsets in long texts would outweigh the other features.
        offset = torch.tanh(((weights * columns).sum(-1) - positions) / 4)
        numbers = torch.stack([offset, weights.amax(-1)], dim=-1).to(own.dtype)
        x = self.compare(torch.cat([own, aligned, own - aligned, own * aligned, numbers], dim=-1))
        bias = self.relative_bias(positions, positions)
        bias = bias.masked_fill(~mask[:, None, None, :], torch.finfo(bias.dtype).min)
        mix = partial(attention, attn_mask=bias)
        for layer in self.layers:
            x = layer(x, x.shape[1], mix)
        kept = mask[:, :, None]
        # No division by zero: every text has at least the tokens <s> and </s>.
        mean = (x * kept).sum(1) / kept.sum(1)
        return torch.cat([mean, x.masked_fill(~kept, torch.finfo(x.dtype).min).amax(1)], dim=-1)


N = TypeVar("N", bound=nn.Module)


class _NoInitialWeights(TorchFunctionMode):
    """Skips the functions of `torch.nn.init`, which take a second without memory to write to."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if getattr(func, "__module__", None) == "torch.nn.init":
            return args[0] if args else (kwargs or {})["tensor"]
        return func(*args, **(kwargs or {}))


def on_meta(build: Callable[[], N]) -> N:
    """Build a network without memory for its weights, which are read from a file afterwards."""
    with torch.device("meta"), _NoInitialWeights():
        return build()


def with_weights(weights: Mapping[str, Floats32], kind: type[N], *shape: Any) -> N:
    """Build a network of a kind and shape that shares the memory of its weights with arrays."""
    network = on_meta(lambda: kind(*shape))
    # The parameters have no memory to copy the weights to, so the weights take their place.
    network.load_state_dict({name: torch.from_numpy(values) for name, values in weights.items()}, assign=True)
    return network
