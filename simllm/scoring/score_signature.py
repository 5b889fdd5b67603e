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
    """Build the signature of scores, a text that names everything that can change a score.

    The text consists of `key:value` pairs, joined by `|`, such as "similarity:cosine|dtype:float32".

    Args:
        model: The model.
        pooling: The name of the pooling, such as "mean"; ignored for the similarities that match tokens
            ("precision", "recall" and "f1").
        similarity: The name of the similarity, such as "cosine" or "f1".
        mode: The mode of the metric: "exact" or "plain" (both float32), or "fast" (bfloat16).
        on_long: The treatment of long texts: "truncate", "window" or "error".
        with_head: Whether the metric uses the meaning head, the network that predicts whether two texts have
            the same meaning; ignored for the similarities that match tokens.
        frequencies: For each token, how many texts contain it; used only for the similarities that match
            tokens. None if the numbers are counted in the references of the scored pairs.
    """
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
    if on_long == "window":
        parts["long"] = "window"
    parts["version"] = simllm.__version__
    return "|".join(f"{key}:{value}" for key, value in parts.items())
