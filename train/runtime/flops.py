"""How much arithmetic training takes, and how much a device can do."""

from __future__ import annotations

import time

import torch

from simllm.model.config import ModelConfig
from train.pretrain.permutation import Ints
from train.runtime.distributed import PRECISIONS

# Dense bfloat16 (V100: float16) operations a second, from the makers' data sheets.
_PEAKS = {
    "B200": 2250e12,
    "H100 PCIe": 756e12,
    "H100 NVL": 835e12,
    "H100": 989e12,
    "H200": 989e12,
    "A100": 312e12,
    "L40S": 362e12,
    "V100": 125e12,
}


def training_flops(config: ModelConfig, shape: Ints) -> float:
    """Floating-point operations of one forward and backward pass over texts of (n, m).

    Two for each multiply-add of the matrix products, attention included, and twice the
    forward pass for the backward pass. With D, F, L, V the hidden, intermediate, layer and
    vocabulary size, a content row costs a layer 2 (4 D² + 2 D F) and 4 D n for attention
    (it sees n positions), a query row 4 D² less, as it has no key and value; a predicted
    token costs 2 (D² + D V). Padding, embeddings, norms and optimizer count for nothing.
    """
    hidden, inner = config.hidden_size, config.intermediate_size
    length, predicted = shape[:, 0].astype(float), shape[:, 1].astype(float)
    content, queries = length + predicted, predicted
    layer = 2 * content * (4 * hidden**2 + 2 * hidden * inner)
    layer += 2 * queries * (2 * hidden**2 + 2 * hidden * inner)
    layer += 4 * hidden * (content + queries) * length
    head = 2 * predicted * (hidden**2 + hidden * config.vocab_size)
    return float(3 * (config.num_hidden_layers * layer + head).sum())


def peak_flops(device: torch.device, precision: str) -> float:
    """Operations a second: a known GPU's data sheet, else a large matrix product at its best here."""
    if device.type == "cuda" and precision != "fp32":
        words = torch.cuda.get_device_name(device).replace("-", " ").split()
        for known, peak in _PEAKS.items():
            if set(known.split()) <= set(words):
                return peak
    size = 8192 if device.type == "cuda" else 1024
    matrix = torch.ones(size, size, dtype=PRECISIONS[precision], device=device)
    times: list[float] = []
    while len(times) < 2 or sum(times) < 0.1:
        started = time.perf_counter()
        matrix @ matrix
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        times.append(time.perf_counter() - started)
    return 2 * size**3 / min(times)
