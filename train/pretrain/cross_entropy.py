"""Cross-entropy loss over a large vocabulary without storing all logits.

The forward pass computes logits, loss and gradients chunk by chunk. Only the gradients with respect to the
inputs are stored for the backward pass (as in Hsu et al., "Liger Kernel", 2024).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

_LOGITS = {"cpu": 2**21, "cuda": 2**26}  # logits in a chunk: they fit into a CPU's cache, or fill a GPU


def linear_cross_entropy(
    hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, ignore: int
) -> Tensor:
    """Compute the cross-entropy of a linear layer: sum_i -log softmax(hidden_i · weightᵀ + bias)[target_i].

    Matrix products are computed in the data type of autocast. If that type is float16, they are computed in
    float32 instead, because small probabilities underflow in float16. Everything else is computed in float32.

    Args:
        hidden: (M, D) hidden states.
        weight: (V, D) token embeddings.
        bias: (V,) bias of the logits.
        targets: (M,) token ids to predict.
        ignore: A token id, such as that of padding. Rows with this target have loss 0.

    Returns:
        The loss in nats, a scalar: the sum over all rows, not the mean.
    """
    device = hidden.device.type
    dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else hidden.dtype
    dtype = torch.float32 if dtype == torch.float16 else dtype
    with torch.autocast(device, enabled=False):
        loss: Tensor = _LinearCrossEntropy.apply(
            hidden.to(dtype), weight, bias, targets, ignore, torch.is_grad_enabled()
        )
    return loss


class _LinearCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, ignore: int, gradients: bool
    ) -> Tensor:
        """Compute the cross-entropy of a linear layer for a chunk of rows at a time, to save memory.

        Args:
            ctx: Autograd's context, in which gradients are stored for `backward`.
            hidden: (M, D) hidden states.
            weight: (V, D) token embeddings.
            bias: (V,) bias of the logits.
            targets: (M,) token ids to predict.
            ignore: A token id. Rows with this target have loss 0.
            gradients: Whether to compute and store the gradients with respect to `hidden`, `weight` and
                `bias`.

        Returns:
            The sum of the losses of all rows, in nats.
        """
        vectors, loss = weight.to(hidden.dtype), hidden.new_zeros((), dtype=torch.float32)
        rows = max(1, _LOGITS[hidden.device.type] // len(weight))
        to_hidden = torch.empty_like(hidden)
        to_weight, to_bias = torch.zeros_like(weight), torch.zeros_like(bias)
        for start in range(0, len(hidden), rows):
            part, target = hidden[start : start + rows], targets[start : start + rows, None]
            counted = target != ignore
            log_p = (part @ vectors.T).float().add_(bias).log_softmax(1)
            loss -= (log_p.gather(1, target) * counted).sum()
            if gradients:
                error = log_p.exp_().scatter_add_(1, target, -torch.ones_like(target, dtype=log_p.dtype))
                error *= counted
                to_bias += error.sum(0)
                error = error.to(hidden.dtype)
                to_hidden[start : start + rows] = error @ vectors
                to_weight += error.T @ part
        if gradients:
            ctx.save_for_backward(to_hidden, to_weight, to_bias)
        return loss

    @staticmethod
    def backward(ctx: Any, *outputs: Tensor) -> tuple[Tensor | None, ...]:
        """Compute the gradients with respect to `hidden`, `weight` and `bias` by the chain rule.

        Args:
            ctx: Autograd's context. `forward` stored three gradients in it: those of the loss (the result of
                `forward`) with respect to `hidden`, `weight` and `bias`.
            outputs: One scalar from autograd: the gradient with respect to the loss. The stored gradients
                are multiplied by this scalar.

        Returns:
            The three gradients, and None for each other argument of `forward`.
        """
        (loss,) = outputs
        scaled = ((saved.float() * loss).to(saved.dtype) for saved in ctx.saved_tensors)
        return *scaled, None, None, None
