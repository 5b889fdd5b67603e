"""The torch device on which the metric runs by default: a GPU if there is one."""

from __future__ import annotations

import torch


def default_device() -> str:
    """Return the name of the default torch device: "cuda" if there is a CUDA GPU, otherwise "cpu"."""
    return "cuda" if torch.cuda.is_available() else "cpu"
