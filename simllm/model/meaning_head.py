"""The meaning head: a network that predicts whether two texts have the same meaning.

The cosine of two text embeddings hardly changes if one text has an additional "not", or if two words are
swapped. Therefore the head aligns each token with similar tokens of the other text, and compares the aligned
tokens (Parikh et al., "A decomposable attention model", 2016; Chen et al., "Enhanced LSTM for natural
language inference", 2017). A few transformer layers then read these comparisons in the order of the text. The
large encoder runs only once for each text, even if the text is in many pairs.
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
    """Network that predicts the logit of the same meaning; the order of the two texts does not matter."""

    def __init__(self, config: HeadConfig, encoder: ModelConfig) -> None:
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
        # The head starts without a preference for any distance.
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
        """Predict (P,) logits from (P, L, W) and (P, M, W) outputs of `project`, and their masks.

        `attention` may replace that of PyTorch, with its arguments.
        """
        scores = self.align(a) @ self.align(b).transpose(1, 2) / self.config.width**0.5
        of_a = self._read(a, a_mask, b, b_mask, scores, attention)
        of_b = self._read(b, b_mask, a, a_mask, scores.transpose(1, 2), attention)
        # A sum, so that the order of the texts does not matter.
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
