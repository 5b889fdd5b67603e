"""The signature of scores: a text that names everything that can change a score."""

from __future__ import annotations

import simllm
from simllm.model.exact_and_fast_mode import MODES
from simllm.model.saved_model import SavedModel
from simllm.scoring.token_idf_weights import Frequencies
from simllm.scoring.token_matching import TOKEN_SIMILARITIES


def score_signature(
    model: SavedModel,
    pooling: str,
    similarity: str,
    mode: str,
    on_long: str,
    with_head: bool,
    frequencies: Frequencies | None,
) -> str:
    """Build the signature: `key:value` pairs joined by `|`, such as "similarity:cosine|dtype:float32".

    `frequencies` is None if they are counted in the references of the scored pairs.
    """
    # Similarities that match tokens use neither pooling nor meaning head; the others use no frequencies.
    by_token = similarity in TOKEN_SIMILARITIES
    parts = {
        "model": model.hash,
        "tokenizer": model.tokenizer.hash,
        "pooling": "none" if by_token else pooling,
        "similarity": similarity,
        "dtype": str(MODES[mode]).removeprefix("torch."),
        "max_length": model.encoder.config.max_length,
    }
    if with_head and not by_token:
        parts["head"] = model.head_hash
    if by_token:
        parts["frequencies"] = frequencies.hash if frequencies else "references"
    # "truncate" and "error" give equal scores wherever they give scores.
    if on_long == "window":
        parts["long"] = "window"
    parts["version"] = simllm.__version__
    return "|".join(f"{key}:{value}" for key, value in parts.items())
