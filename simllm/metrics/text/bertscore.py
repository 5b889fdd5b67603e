"""BERTScore (Zhang et al., 2020), from the package bert-score.

Each token is matched with the most similar token of the other text. Precision is the mean cosine similarity
of the candidate's tokens and their matches; recall is that of the reference's tokens. The score is F1.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from simllm.io.reading import read_json
from simllm.metrics.interface import UnavailableError
from simllm.metrics.text.model_folders import SINGLE_DIGITS, loading
from simllm.metrics.text.readable_texts import TextScorer


def load(model: str) -> TextScorer:
    """Load BERTScore from the last layer of a transformers model in a folder; F1 without rescaling."""
    from bert_score import BERTScorer

    config = Path(model) / "config.json"
    if not config.is_file():
        raise UnavailableError(
            f"{model}: no folder of a transformers model; download one (hf download NAME --local-dir {model})"
        )
    with loading(Path(model)):
        # bert-score knows the best layer of published models by their names only; a folder has no such name.
        scorer = BERTScorer(model_type=model, num_layers=read_json(config)["num_hidden_layers"])

    def score(candidates: Sequence[str], references: Sequence[str]) -> NDArray[np.float64]:
        f1 = scorer.score(list(candidates), list(references))[2]
        return f1.numpy().astype(np.float64).round(SINGLE_DIGITS)

    return TextScorer(score)


def data(model: str) -> dict[str, Path]:
    """Return the path of the model folder."""
    return {"model": Path(model)}
