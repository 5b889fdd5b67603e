"""The anchor loss, which keeps the encoder near the initial model during contrastive training.

The anchor is a frozen copy of the initial encoder. The encoder that is being trained learns to give texts the
same similarities to each other as the anchor gives them.
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
    """A frozen copy of the initial encoder, which embeds texts as the encoder did before training.

    Args:
        encoder: The initial encoder, which is copied.
        pool: Function that computes (B, D) embeddings from (B, L, D) states of tokens and their (B, L) mask.
        precision: Precision of matrix products: "fp32", "bf16" or "fp16".
        device: The device on which the encoder is.
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
        """Embed a batch of tokenized texts with the frozen initial encoder, without gradients.

        Args:
            tokens: (B, L) token ids.
            mask: (B, L), true for tokens, false for padding.

        Returns:
            (B, D) float32 embeddings.
        """
        with torch.no_grad(), autocast(self.device, self.precision):
            return self.pool(self.encoder(tokens, mask), mask).float()


def anchor_loss(embeddings: Tensor, anchored: Tensor, temperature: float) -> Tensor:
    """Compute how much the training has changed the encoder's similarities of N texts to each other.

    The encoder that is being trained is compared with the anchor, a frozen copy of the initial encoder. For
    each text, a softmax over its cosines with the other texts gives a distribution. The loss is the mean of
    the KL divergences KL(anchor || encoder) of these distributions.

    Args:
        embeddings: (N, D) embeddings from the encoder that is being trained.
        anchored: (N, D) embeddings from the anchor. No gradient flows into them.
        temperature: The temperature of the softmax.

    Returns:
        The loss, a scalar.
    """
    unit = F.normalize(anchored.detach(), dim=1)
    return neighbour_distillation_loss(embeddings, unit @ unit.T, temperature)
