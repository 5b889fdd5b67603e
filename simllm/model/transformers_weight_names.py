"""Names of encoder weights in the library transformers, and reading of weights that are stored under them."""

from __future__ import annotations

from pathlib import Path

from torch import Tensor

from simllm.errors import InputError
from simllm.model.encoder import Encoder
from simllm.model.read_weights import read_weights

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


def read_encoder_weights(folder: Path, encoder: Encoder) -> dict[str, Tensor]:
    """Read the encoder's weights from a model folder, as float32.

    Args:
        folder: The model folder. Its weights are named as in the library `transformers`.
        encoder: An encoder of the right shape; only its parameter names and shapes are used.

    Returns:
        A dict from the names of the parameters of `encoder` to their weights.

    Raises:
        InputError: A weight is missing, unknown, not finite, or has another shape than in `encoder`.
    """
    stored = read_weights(folder)
    names = {transformers_name(name) for name in encoder.state_dict()}
    for name in stored.keys() - names:
        if not name.startswith(_IGNORED_WEIGHTS):
            raise InputError(f"{folder}: weight {name} has no place in the model of config.json")
    state = {}
    for name, parameter in encoder.state_dict().items():
        tensor = stored.get(transformers_name(name))
        if tensor is None:
            raise InputError(f"{folder}: no weight {transformers_name(name)}")
        if tensor.shape != parameter.shape:
            shapes = f"{tuple(tensor.shape)}, expected {tuple(parameter.shape)}"
            raise InputError(f"{folder}: {transformers_name(name)} has shape {shapes}")
        if not tensor.isfinite().all():
            raise InputError(f"{folder}: {transformers_name(name)} holds values that are not finite")
        state[name] = tensor.float()
    return state
