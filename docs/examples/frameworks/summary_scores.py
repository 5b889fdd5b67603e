"""Scores of generated summaries for the lm-evaluation-harness task `summarize_code.yaml`."""

from functools import cache
from typing import Any

from simllm import SimLLM

load = cache(SimLLM)


def process_results(doc: dict[str, Any], results: list[str]) -> dict[str, Any]:
    """Score the summary that a model generated for a row of the data."""
    scores = load().score([results[0].strip()], [doc["reference"]])
    return {
        "simllm": float(scores.values[0]),
        "simllm_same": float(scores.on("same")[0]),
        "simllm_signature": scores.signature,
    }


def signature(signatures: list[str]) -> str:
    """Return the signature, which all rows share."""
    return signatures[0]
