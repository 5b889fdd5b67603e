"""BERTScore (Zhang et al., 2020), from the package bert-score.

Each token is matched with the most similar token of the other text. Precision is the mean cosine similarity
of the candidate's tokens and their matches. Recall is the same mean for the reference's tokens. The score is
F1, the harmonic mean of precision and recall.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from simllm.io.read_json_object import read_json
from simllm.metrics.metric_interface import ScoreFunction, UnavailableError
from simllm.metrics.text.built_in_text_metrics import SINGLE_DIGITS


def load(model: str) -> ScoreFunction:
    """Load BERTScore: return a function that scores n candidates, each against its own reference.

    The score is F1, computed from the embeddings in the model's last layer, without rescaling. If a text
    is empty, the score is 0.

    Args:
        model: The folder of a transformers model.
    """
    import torch
    from bert_score import BERTScorer

    config = Path(model) / "config.json"
    if not config.is_file():
        raise UnavailableError(
            f"{model}: no folder of a transformers model; download one (hf download NAME --local-dir {model})"
        )
    with torch.random.fork_rng(devices=[]):  # transformers draws weights that the folder lacks
        scorer = BERTScorer(model_type=model, num_layers=read_json(config)["num_hidden_layers"])

    def score(candidates: Sequence[str], references: Sequence[str]) -> NDArray[np.float64]:
        values = np.zeros(len(candidates))
        pairs = zip(candidates, references, strict=True)
        scored = [i for i, pair in enumerate(pairs) if all(text.strip() for text in pair)]
        if scored:  # bert-score fails on empty texts
            sides = ([texts[i] for i in scored] for texts in (candidates, references))
            values[scored] = scorer.score(*sides)[2].numpy().astype(np.float64).round(SINGLE_DIGITS)
        return values

    return score


def data(model: str) -> dict[str, Path]:
    """Return the path of the model folder, so that a change of the model can be noticed.

    simllm hashes the files in this folder. Stored BERTScores are reused only if the hash is equal.

    Args:
        model: The folder of a transformers model.

    Returns:
        A dict with one entry, from "model" to the path of the model folder.
    """
    return {"model": Path(model)}
