"""The meaning head: a network that predicts whether two texts have the same meaning.

The cosine of two text embeddings hardly changes if one text has an additional "not", or if two words are
swapped. Therefore the head compares the hidden states of single tokens. It aligns each token with similar
tokens of the other text, and compares the aligned tokens (Parikh et al., "A decomposable attention model",
2016; Chen et al., "Enhanced LSTM for natural language inference", 2017). Then a few transformer layers read
the results of these comparisons in the order of the text.

The head reads the hidden states of one or more of the encoder's last layers, side by side. The states of the
last layer alone say less about the order of the words. The last layer was trained for text embeddings, and a
text embedding is the mean of the last layer's states over all tokens of the text.

The large encoder, which computes the hidden states, runs only once for each text, even if the text is in many
pairs.

Shapes: P pairs, L and M tokens of the two texts, D hidden size of the encoder, W width of the head.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from simllm.errors import InputError
from simllm.model.config import HeadConfig, ModelConfig
from simllm.model.encoder import Layer, RelativeBias, attention


class MeaningHead(nn.Module):
    """Network that predicts whether two texts have the same meaning.

    Its output is the logit of the probability of the same meaning. The order of the texts does not matter.
    """

    def __init__(self, config: HeadConfig, encoder: ModelConfig) -> None:
        """Make a network with random weights, to predict whether two texts have the same meaning.

        Args:
            config: The shape of this network (the meaning head).
            encoder: The shape of the encoder. The meaning head reads the hidden states of its last layers.

        Raises:
            InputError: The meaning head reads more layers than the encoder has.
        """
        super().__init__()
        self.config = config
        width = config.width
        inner = ModelConfig(
            hidden_size=width,
            num_attention_heads=config.heads,
            intermediate_size=2 * width,
            max_position_embeddings=encoder.max_position_embeddings,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        )
        if config.encoder_layers > encoder.num_hidden_layers:
            raise InputError(
                f"meaning head: encoder_layers {config.encoder_layers} is more than the encoder's "
                f"{encoder.num_hidden_layers} layers"
            )
        self.project = nn.Linear(config.encoder_layers * encoder.hidden_size, width)
        self.align = nn.Linear(width, width)
        # Features of a token: its state, the aligned state, their difference and product, and two numbers:
        # the offset of the aligned position, and the largest alignment weight.
        self.compare = nn.Linear(4 * width + 2, width)
        self.relative_bias = RelativeBias(inner)
        nn.init.zeros_(self.relative_bias.table.weight)
        self.layers = nn.ModuleList(Layer(inner) for _ in range(config.layers))
        self.hidden = nn.Linear(2 * width, width)
        self.logit = nn.Linear(width, 1)

    def forward(
        self,
        a: Tensor,
        a_mask: Tensor,
        b: Tensor,
        b_mask: Tensor,
        attention: Callable[..., Tensor] = attention,
    ) -> Tensor:
        """Predict for each of P text pairs whether the two texts have the same meaning.

        The caller first applies the layer `project` to the encoder's hidden states. This layer maps them to
        vectors of the width W of the meaning head.

        Args:
            a: (P, L, W) mapped states of the first text in each pair, with L tokens, padding included.
            a_mask: (P, L) bool, true for tokens of `a` that are not padding.
            b: (P, M, W) mapped states of the second text in each pair, with M tokens, padding included.
            b_mask: (P, M) bool, true for tokens of `b` that are not padding.
            attention: The function that computes the attention of the head's layers, by default
                `simllm.model.encoder.attention`; other functions must take the same arguments.

        Returns:
            (P,) logits of the probability that the two texts have the same meaning.
        """
        scores = self.align(a) @ self.align(b).transpose(1, 2) / self.config.width**0.5
        of_a = self._read(a, a_mask, b, b_mask, scores, attention)
        of_b = self._read(b, b_mask, a, a_mask, scores.transpose(1, 2), attention)
        return self.logit(F.gelu(self.hidden(of_a + of_b))).squeeze(-1)

    def _read(
        self,
        own: Tensor,
        mask: Tensor,
        other: Tensor,
        other_mask: Tensor,
        scores: Tensor,
        attention: Callable[..., Tensor],
    ) -> Tensor:
        """Compute features of one text in each pair by comparing its tokens with those of the other text.

        Each token is compared with the weighted mean of the other text's tokens. The weights are the softmax
        of the token's alignment scores.

        Args:
            own: (P, L, W) states of the text whose features are computed, with L tokens, in each of P pairs.
                The layer `project` of the meaning head mapped the encoder's hidden states to these vectors of
                width W.
            mask: (P, L) bool, true for tokens of `own` that are not padding.
            other: (P, M, W) states of the other text in each pair, with M tokens, mapped in the same way.
            other_mask: (P, M) bool, true for tokens of `other` that are not padding.
            scores: (P, L, M) alignment scores: how similar each token of `own` is to each token of `other`.
            attention: The function that computes the attention of the head's layers.

        Returns:
            (P, 2 W) features of the text `own` of each pair. The first W features are the mean over the
            tokens of this text. The last W features are the maximum over these tokens.
        """
        scores = scores.masked_fill(~other_mask[:, None, :], torch.finfo(scores.dtype).min)
        # In float32: bfloat16 cannot tell position 300 from 301, and its softmax is slow.
        weights = scores.softmax(-1, dtype=torch.float32)
        aligned = weights.to(other.dtype) @ other
        columns = torch.arange(other.shape[1], device=own.device)
        positions = torch.arange(own.shape[1], device=own.device)[None]
        offset = torch.tanh(((weights * columns).sum(-1) - positions) / 4)
        numbers = torch.stack([offset, weights.amax(-1)], dim=-1).to(own.dtype)
        x = self.compare(torch.cat([own, aligned, own - aligned, own * aligned, numbers], dim=-1))
        bias = self.relative_bias(positions, positions)
        bias = bias.masked_fill(~mask[:, None, None, :], torch.finfo(bias.dtype).min)
        mix = partial(attention, bias=bias, dropout=0.0)
        for layer in self.layers:
            x = layer(x, x.shape[1], mix)
        kept = mask[:, :, None]
        mean = (x * kept).sum(1) / kept.sum(1)
        return torch.cat([mean, x.masked_fill(~kept, torch.finfo(x.dtype).min).amax(1)], dim=-1)
