"""Precision of matrix products: autocast, loss scaling for float16, and the peak speed of a device."""

from __future__ import annotations

import time

import torch

PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}  # of matrix products


def autocast(device: torch.device, precision: str) -> torch.autocast:
    """Return a context that computes matrix products in one of `PRECISIONS`."""
    return torch.autocast(device.type, PRECISIONS[precision], enabled=precision != "fp32")


def make_scaler(device: torch.device, precision: str) -> torch.amp.GradScaler:
    """Make the scaler of a run, which is active in fp16 only."""
    return torch.amp.GradScaler(device.type, enabled=precision == "fp16")


# Dense bfloat16 (V100: float16) operations per second, from the makers' data sheets.
# The first name that fits counts, so "H100" stands after its special forms.
_PEAK_FLOPS = {
    "B200": 2250e12,
    "H100 PCIe": 756e12,
    "H100 NVL": 835e12,
    "H100": 989e12,
    "H200": 989e12,
    "A100": 312e12,
    "L40S": 362e12,
    "V100": 125e12,
}


def peak_flops(device: torch.device, precision: str) -> float:
    """Return a device's peak of floating-point operations per second: from its data sheet, or measured."""
    if device.type == "cuda" and precision != "fp32":
        words = torch.cuda.get_device_name(device).replace("-", " ").split()
        for gpu, peak in _PEAK_FLOPS.items():
            if set(gpu.split()) <= set(words):
                return peak
    size = 8192 if device.type == "cuda" else 1024
    matrix = torch.ones(size, size, dtype=PRECISIONS[precision], device=device)
    times: list[float] = []
    # At least twice, because the first product also loads the library.
    while len(times) < 2 or sum(times) < 0.1:
        started = time.perf_counter()
        matrix @ matrix
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        times.append(time.perf_counter() - started)
    return 2 * size**3 / min(times)
