"""The torch device on which the metric runs: a GPU if there is one, or the device that the user names."""

from __future__ import annotations

import torch

from simllm.errors import InputError


def default_device() -> str:
    """Return the name of the default torch device: "cuda" if there is a CUDA GPU, otherwise "cpu"."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def usable_device(device: str) -> str:
    """Return the name of a torch device; raise InputError if this machine cannot compute on it."""
    try:
        torch.zeros(1, device=device).cpu()
    except (AssertionError, NotImplementedError, RuntimeError, TypeError, ImportError) as error:
        reason = str(error).partition("\n")[0].partition(". ")[0] or type(error).__name__
        usable = "cpu or cuda" if torch.cuda.is_available() else "cpu"
        raise InputError(f"device {device!r}: cannot be used ({reason}); expected {usable}") from None
    return device
