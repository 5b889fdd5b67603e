"""Number of floating-point operations in training, and the peak speed of a device."""

from __future__ import annotations

import time

import torch

from simllm.array_types import Ints
from simllm.model.config import ModelConfig
from train.runtime.optimizer import PRECISIONS

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


def training_flops(config: ModelConfig, shape: Ints) -> float:
    """Count the floating-point operations of training the permuted language model on B texts once.

    `shape` is (B, 2): the number of tokens n of each text, and how many of them, m, the model predicts. The
    encoder has two streams of vectors, as in MPNet. The content stream has n + m: one for each token, and one
    for a mask token at each predicted position. The query stream has m, from which the tokens are predicted.

    A multiply-add counts as two operations. With hidden size D, intermediate size F and vocabulary size V,
    the forward pass costs:

        8 D² + 4 D F + 4 D n    for each content vector in each layer
        4 D² + 4 D F + 4 D n    for each query vector in each layer
        2 D² + 2 D V            for each predicted token

    The backward pass costs twice the forward pass. Padding, embeddings, norms and the optimizer are not
    counted.
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
