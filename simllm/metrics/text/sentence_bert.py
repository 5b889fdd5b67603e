"""SentenceBERT (Reimers and Gurevych, 2019): cosine of two texts' embeddings from sentence-transformers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from simllm.metrics.interface import UnavailableError
from simllm.metrics.text.model_folders import SINGLE_DIGITS, loading
from simllm.metrics.text.readable_texts import TextScorer
from simllm.model.pooling import cosine


def load(model: str) -> TextScorer:
    """Load SentenceBERT from a folder or the name of a downloaded model; scores are from -1 to 1."""
    from sentence_transformers import SentenceTransformer

    try:
        folder = _folder(model)
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise UnavailableError(
            f"{model}: not a model folder, nor downloaded (hf download {model}): {reason}"
        ) from None
    with loading(folder):
        encoder = SentenceTransformer(str(folder), local_files_only=True, trust_remote_code=False)

    def score(candidates: Sequence[str], references: Sequence[str]) -> NDArray[np.float64]:
        texts = [*candidates, *references]
        embeddings = encoder.encode(texts, show_progress_bar=False, convert_to_numpy=True)
        values = cosine(embeddings[: len(candidates)], embeddings[len(candidates) :])
        return values.round(SINGLE_DIGITS)

    return TextScorer(score)


def data(model: str) -> dict[str, Path]:
    """Return the path of the model folder."""
    return {"model": _folder(model)}


def _folder(model: str) -> Path:
    """Find a model's folder on this machine; raise OSError or ValueError instead of downloading the model."""
    from huggingface_hub import snapshot_download

    if Path(model).is_dir():
        return Path(model)
    try:
        return Path(snapshot_download(model, local_files_only=True))
    except (OSError, ValueError):
        if "/" in model:
            raise
        # sentence-transformers adds its own organisation to a name without one, such as "all-MiniLM-L6-v2".
        return Path(snapshot_download(f"sentence-transformers/{model}", local_files_only=True))
