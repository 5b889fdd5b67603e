"""Cross-entropy over a large vocabulary without storing all logits.

The forward pass computes logits, loss and gradients chunk by chunk. Only the gradients with respect to the
inputs are stored for the backward pass (as in Hsu et al., "Liger Kernel", 2024).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

# Logits in a chunk: they fit into a CPU's cache, or fill a GPU.
_LOGITS = {"cpu": 2**21, "cuda": 2**26}


def linear_cross_entropy(
    hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, ignore: int
) -> Tensor:
    """Compute sum_i -log softmax(hidden_i · weightᵀ + bias)[target_i] in nats, a sum and not a mean.

    Shapes: `hidden` (M, D), `weight` (V, D), `bias` (V,), `targets` (M,). Rows with the target `ignore`, such
    as padding, have loss 0.
    """
    device = hidden.device.type
    dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else hidden.dtype
    # Small probabilities underflow in float16. Everything but matrix products is computed in float32.
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
        """Compute the loss, and with `gradients` also the gradients, a chunk of rows at a time."""
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
                # The gradient of the loss with respect to the logits: softmax minus one-hot target.
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
        """Multiply the stored gradients by the gradient with respect to the loss, a scalar."""
        (loss,) = outputs
        scaled = ((saved.float() * loss).to(saved.dtype) for saved in ctx.saved_tensors)
        return *scaled, None, None, None
