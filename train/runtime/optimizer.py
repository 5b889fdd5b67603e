"""The optimizer's parameter groups and the learning rate as a function of the update."""

from __future__ import annotations

import torch
from torch import nn

from train.runtime.config import Optimization


def optimizer(model: nn.Module, config: Optimization) -> torch.optim.AdamW:
    """AdamW; weight decay on matrices only, not on biases and layer norms."""
    decayed = [p for p in model.parameters() if p.ndim > 1]
    plain = [p for p in model.parameters() if p.ndim == 1]
    return torch.optim.AdamW(
        [{"params": decayed, "weight_decay": config.weight_decay}, {"params": plain, "weight_decay": 0.0}],
        lr=config.learning_rate,
        betas=(config.adam_beta1, config.adam_beta2),
        eps=config.adam_epsilon,
        fused=True,
    )


def learning_rate(update: int, config: Optimization) -> float:
    """Linear warm-up from `warmup_start`, then linear decay to zero (SIMLLM, section 5)."""
    peak, warmup = config.learning_rate, config.warmup_updates
    if update < warmup:
        return config.warmup_start + (peak - config.warmup_start) * update / warmup
    return peak * (config.updates - update) / max(1, config.updates - warmup)
