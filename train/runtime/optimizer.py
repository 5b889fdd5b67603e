"""Mixed precision: the data type of matrix products (autocast), and loss scaling for float16."""

from __future__ import annotations

import torch
from torch import nn

from train.runtime.config import TrainingConfig

PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}  # of matrix products


def autocast(device: torch.device, precision: str) -> torch.autocast:
    """Return a context that computes matrix products in one of `PRECISIONS`."""
    return torch.autocast(device.type, PRECISIONS[precision], enabled=precision != "fp32")


def make_scaler(device: torch.device, precision: str) -> torch.amp.GradScaler:
    """Make the scaler of a run, which is active in fp16 only."""
    return torch.amp.GradScaler(device.type, enabled=precision == "fp16")


def make_optimizer(model: nn.Module, config: TrainingConfig) -> torch.optim.AdamW:
    """Make an AdamW optimizer with weight decay on matrices, but not on biases and layer norms."""
    decayed = [p for p in model.parameters() if p.ndim > 1]
    plain = [p for p in model.parameters() if p.ndim == 1]
    return torch.optim.AdamW(
        [{"params": decayed, "weight_decay": config.weight_decay}, {"params": plain, "weight_decay": 0.0}],
        lr=config.learning_rate,
        betas=(config.adam_beta1, config.adam_beta2),
        eps=config.adam_epsilon,
        fused=True,
    )


def learning_rate(update: int, config: TrainingConfig) -> float:
    """Compute the learning rate of one update: linear warm-up to the peak, then a linear fall to 0.

    The schedule is that of section 5 of the SIMLLM paper.
    """
    peak, warmup = config.learning_rate, config.warmup_updates
    if update < warmup:
        return config.warmup_start + (peak - config.warmup_start) * update / warmup
    return peak * (config.updates - update) / max(1, config.updates - warmup)
