"""The anchor loss, which keeps the encoder's similarities of texts to each other near those of the initial
model.
"""

from __future__ import annotations

import copy
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from simllm.model.encoder import Encoder
from train.distill.teacher_losses import neighbour_distillation_loss
from train.runtime.mixed_precision import autocast


class Anchor:
    """A frozen copy of the initial encoder.

    `pool` computes (B, D) embeddings from (B, L, D) states of tokens and their (B, L) mask; `precision` is
    "fp32", "bf16" or "fp16".
    """

    def __init__(
        self,
        encoder: Encoder,
        pool: Callable[[Tensor, Tensor], Tensor],
        precision: str,
        device: torch.device,
    ) -> None:
        self.encoder = copy.deepcopy(encoder).requires_grad_(False)
        self.pool, self.precision, self.device = pool, precision, device

    def embed(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """Compute (B, D) float32 embeddings without gradients, from (B, L) token ids and their mask."""
        with torch.no_grad(), autocast(self.device, self.precision):
            return self.pool(self.encoder(tokens, mask), mask).float()


def anchor_loss(embeddings: Tensor, anchored: Tensor, temperature: float) -> Tensor:
    """Compute how much training has changed the similarities of N texts to each other.

    A softmax over a text's cosines with the other texts gives a distribution. The loss is the mean KL
    divergence KL(anchor || encoder) of these distributions. Both embeddings are (N, D).
    """
    unit = F.normalize(anchored.detach(), dim=1)
    # The anchor plays the part of the teacher of a distillation.
    return neighbour_distillation_loss(embeddings, unit @ unit.T, temperature)
