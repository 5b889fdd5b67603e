"""Names of encoder weights in the library transformers, and reading of weights that are stored under them."""

from __future__ import annotations

from pathlib import Path

from simllm.model import read_weights
from simllm.model.encoder import Encoder

# Parts of the names of `Encoder` parameters, and the corresponding parts of the names in transformers.
_TRANSFORMERS_NAMES = {
    "embeddings.token.": "embeddings.word_embeddings.",
    "embeddings.position.": "embeddings.position_embeddings.",
    "embeddings.norm.": "embeddings.LayerNorm.",
    "relative_bias.table.": "encoder.relative_attention_bias.",
    "layers.": "encoder.layer.",
    ".attention.query.": ".attention.attn.q.",
    ".attention.key.": ".attention.attn.k.",
    ".attention.value.": ".attention.attn.v.",
    ".attention.output.": ".attention.attn.o.",
    ".attention_norm.": ".attention.LayerNorm.",
    ".up.": ".intermediate.dense.",
    ".down.": ".output.dense.",
}

# Beginnings of the names of weights that transformers may add; the encoder does not use them.
_IGNORED_WEIGHTS = ("pooler.", "lm_head.", "embeddings.position_ids")


def transformers_name(name: str) -> str:
    """Translate a parameter's name in `Encoder` to its name in `MPNetModel` of the library transformers."""
    if name.startswith("layers.") and name.split(".")[2] == "norm":
        name = name.replace(".norm.", ".output.LayerNorm.")
    for ours, theirs in _TRANSFORMERS_NAMES.items():
        name = name.replace(ours, theirs)
    return name


def read_encoder_weights(folder: Path, encoder: Encoder) -> None:
    """Read the weights of an encoder that was built on the device `meta` from a model folder, as float32.

    Raises:
        InputError: A weight is missing, unknown, not finite, or has another shape than in `encoder`.
    """
    stored = read_weights.read_headers(read_weights.weight_files(folder))
    read_weights.fill(encoder, stored, str(folder), transformers_name, _IGNORED_WEIGHTS)
