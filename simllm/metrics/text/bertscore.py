"""BERTScore (Zhang et al., 2020): F1 of greedily matched token embeddings, from the package bert-score."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from simllm.io.strict import read_json
from simllm.metrics.text import SINGLE_DIGITS, ScoreFunction, UnavailableError


def load(model: str) -> ScoreFunction:
    """Return the scoring function: F1 of the last layer's embeddings, without rescaling.

    Args:
        model: The folder of a transformers model.
    """
    from bert_score import BERTScorer

    config = Path(model) / "config.json"
    if not config.is_file():
        raise UnavailableError(
            f"{model}: no folder of a transformers model; download one (hf download NAME --local-dir {model})"
        )
    scorer = BERTScorer(model_type=model, num_layers=read_json(config)["num_hidden_layers"])

    def score(candidates: Sequence[str], references: Sequence[str]) -> NDArray[np.float64]:
        values = scorer.score(list(candidates), list(references))[2].numpy().astype(np.float64)
        return values.round(SINGLE_DIGITS)

    return score


def data(model: str) -> dict[str, Path]:
    """Return the folder of the model."""
    return {"model": Path(model)}
