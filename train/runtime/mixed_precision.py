"""Mixed precision: the data type of matrix products (autocast), and loss scaling for float16."""

from __future__ import annotations

import torch

PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}  # of matrix products


def autocast(device: torch.device, precision: str) -> torch.autocast:
    """Return a context that computes matrix products in `precision`: "fp32", "bf16" or "fp16"."""
    return torch.autocast(device.type, PRECISIONS[precision], enabled=precision != "fp32")


def make_scaler(device: torch.device, precision: str) -> torch.amp.GradScaler:
    """Make the loss scaling, which multiplies losses so that small float16 gradients do not become 0.

    Only the precision "fp16" needs loss scaling. With "fp32" and "bf16", the loss is not scaled.
    """
    return torch.amp.GradScaler(device.type, enabled=precision == "fp16")
